"""URLs of shared links: the page that makes and lists them, and what a person with a link opens."""

from django.urls import path

from webapp.sharing import views

app_name = "sharing"
urlpatterns = [
    path("p/<slug:slug>/links/", views.links, name="links"),
    path("p/<slug:slug>/links/make/", views.make, name="make"),
    path("p/<slug:slug>/links/<int:link_id>/revoke/", views.revoke, name="revoke"),
    path("s/<str:secret>/", views.shared, name="shared"),
    path("s/<str:secret>/embed/", views.embedded, name="embedded"),
    path("s/<str:secret>/stream", views.stream, name="stream"),
    path("s/<str:secret>/series", views.series, name="series"),
    path("s/<str:secret>/films.json", views.films, name="films"),
    path("s/<str:secret>/films/<int:film_id>-<str:part>.webp", views.film, name="film"),
]
