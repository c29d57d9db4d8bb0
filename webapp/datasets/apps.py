"""The app of data sets."""

from django.apps import AppConfig

from training.data import library
from webapp.datasets.files import DataFolderStore, shipped_manifest


class DataSetsConfig(AppConfig):
    """Tables that people upload, and the data sets made of them."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "webapp.datasets"

    def ready(self) -> None:
        """Every process of the installation reads data sets from its data folder, and jobs may name the project's."""

        library.use(DataFolderStore(), shipped_manifest)
        from webapp.jobs.launch import project_choices  # imports models, which load after apps

        project_choices.register("data sets", "webapp.datasets.job_choice")
