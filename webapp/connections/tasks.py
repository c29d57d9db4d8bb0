"""What the worker does about connections when it is told to. Messages carry an id and a number, nothing else."""

from celery import shared_task

from webapp.connections import account_setup, connection_test


@shared_task(name="webapp.connections.tasks.test_connection", expires=60)
def test_connection(connection_id: str, number: int) -> None:
    """Make the test of a connection that somebody asked for."""
    connection_test.run_test(connection_id, number)


@shared_task(name="webapp.connections.tasks.set_up_connection", expires=60)
def set_up_connection(connection_id: str, number: int) -> None:
    """Make what a connection's account needs, or take it away, as somebody asked for."""
    account_setup.run(connection_id, number)
