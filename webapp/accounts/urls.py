"""Addresses of people: the way in, the account, a project's members, and invitations."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from webapp.accounts import views

_MEMBERS = "p/<slug:slug>/members/"
pages = [
    path("", views.home, name="home"),
    path("account/", views.account, name="account"),
    path("account/sign-out-everywhere/", views.sign_out_everywhere, name="sign_out_everywhere"),
    path("account/invitations/<int:invitation_id>/accept/", views.accept, name="accept"),
    path("account/invitations/<int:invitation_id>/decline/", views.decline, name="decline"),
    path("sign-in/<str:token>/", views.one_time_sign_in, name="one_time_sign_in"),
    path("join/<str:token>/", views.join, name="join"),
    path(_MEMBERS, views.members, name="members"),
    path(f"{_MEMBERS}invite/", views.invite, name="invite"),
    path(f"{_MEMBERS}invitations/<int:invitation_id>/withdraw/", views.withdraw, name="withdraw"),
    path(f"{_MEMBERS}<int:membership_id>/role/", views.change_role, name="change_role"),
    path(f"{_MEMBERS}<int:membership_id>/remove/", views.remove_member, name="remove_member"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    # Before those of the package, whose views these wrap.
    path("accounts/email/", views.email, name="account_email"),
    re_path(r"^accounts/confirm-email/(?P<key>[-:\w]+)/$", views.confirm_email, name="account_confirm_email"),
    path("accounts/password/set/", views.set_password, name="account_set_password"),
    path("accounts/", include("allauth.account.urls")),
    path("", include((pages, "accounts"))),
]
