"""The tables that staff may read under /admin/."""

from webapp.connections.admin import ConnectionAdmin
from webapp.connections.models import Connection
from webapp.jobs.admin import JobAdmin
from webapp.jobs.models import Job
from webapp.money.admin import ChargeAdmin
from webapp.money.models import Charge
from webapp.read_only_admin import StaffSite

site = StaffSite()
site.register(Job, JobAdmin)
site.register(Charge, ChargeAdmin)
site.register(Connection, ConnectionAdmin)
