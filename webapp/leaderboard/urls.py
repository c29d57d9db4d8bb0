"""The address of the board, below its project."""

from django.urls import path

from webapp.leaderboard import views

app_name = "leaderboard"
urlpatterns = [path("p/<slug:slug>/goals/", views.board, name="board")]
