"""The worker's tasks for reports. Messages carry ids only; each may come twice, late, or never."""

from celery import shared_task

from webapp.reports.bills.bill_reading import look_after_bills, read_bill
from webapp.reports.report_builds import build, look_after_files
from webapp.reports.schedules import send_due


@shared_task(name="webapp.reports.tasks.tick")
def tick() -> None:
    """Every ten seconds: repair what lost messages and dead workers left behind, and send e-mails that are due."""
    look_after_files()
    look_after_bills()
    send_due()


@shared_task(name="webapp.reports.tasks.build_report")
def build_report(file_id: int) -> None:
    """Build a report that was requested on a page or through the API."""
    build(file_id)


@shared_task(name="webapp.reports.tasks.read_cloud_bill")
def read_cloud_bill(bill_id: int) -> None:
    """Read an uploaded bill of a cloud."""
    read_bill(bill_id)
