"""The worker's tasks for connections. Messages contain only an id and a number."""

from celery import shared_task

from webapp.connections import account_setup, connection_test


@shared_task(name="webapp.connections.tasks.test_connection", expires=60)
def test_connection(connection_id: str, number: int) -> None:
    """Run the requested test of a connection."""
    connection_test.run_test(connection_id, number)


@shared_task(name="webapp.connections.tasks.set_up_connection", expires=60)
def set_up_connection(connection_id: str, number: int) -> None:
    """Run the requested set-up or removal in a connection's account."""
    account_setup.run(connection_id, number)
