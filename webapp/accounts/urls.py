"""Addresses of people: the way in, the account, and a project's members."""

from django.urls import URLPattern, URLResolver, include, path

from webapp.accounts import views

pages = [
    path("", views.home, name="home"),
    path("account/", views.account, name="account"),
    path("sign-in/<str:token>/", views.one_time_sign_in, name="one_time_sign_in"),
    path("p/<slug:slug>/members/", views.members, name="members"),
    path("p/<slug:slug>/members/add/", views.add_member, name="add_member"),
    path("p/<slug:slug>/members/<int:membership_id>/role/", views.change_role, name="change_role"),
    path("p/<slug:slug>/members/<int:membership_id>/remove/", views.remove_member, name="remove_member"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("accounts/", include("allauth.account.urls")),
    path("", include((pages, "accounts"))),
]
