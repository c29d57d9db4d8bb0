"""Django settings.

The variables an operator may set, with their defaults, are in docs/settings.md. Every one has a default that works
on one machine with nothing installed.
"""

import secrets
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url
from csp.constants import NONE, SELF

from webapp import variables

# Folders
BASE_DIR = Path(__file__).resolve().parent.parent
STARLING_DATA = Path(variables.text("STARLING_DATA", str(BASE_DIR / "var"))).resolve()
STARLING_HEADLESS = variables.flag("STARLING_HEADLESS")
if not STARLING_HEADLESS:
    variables.require_own_folder(STARLING_DATA)
STARLING_BASE_URL = variables.text("STARLING_BASE_URL", "http://127.0.0.1:8000").rstrip("/")
# Proxies that are trusted to name the scheme and address of clients; headers of others are ignored.
STARLING_TRUSTED_PROXIES = variables.networks("STARLING_TRUSTED_PROXIES")

# Limits of the installation
STARLING_SIGNUP = variables.choice("STARLING_SIGNUP", "open", ("open", "closed"))
STARLING_ENVIRONMENT_PACKAGES = variables.words("STARLING_ENVIRONMENT_PACKAGES")
STARLING_MAX_LOCAL_JOBS = variables.count("STARLING_MAX_LOCAL_JOBS", 0, least=0)
STARLING_MAX_LOCAL_ACTORS = variables.count("STARLING_MAX_LOCAL_ACTORS", 16)
STARLING_MAX_SIMULATED_ACTORS = variables.count("STARLING_MAX_SIMULATED_ACTORS", 1024)
STARLING_MAX_CLOUD_ACTORS = variables.count("STARLING_MAX_CLOUD_ACTORS", 1000)
STARLING_MAX_JOB_MEMORY_MB = variables.count("STARLING_MAX_JOB_MEMORY_MB", 0, least=0)
STARLING_TRAJECTORY_CACHE_MB = variables.count("STARLING_TRAJECTORY_CACHE_MB", 0, least=0)

STARLING_RAY_CLUSTERS = [word.lower() for word in variables.words("STARLING_RAY_CLUSTERS")]

# Connections of clients to one web process; 0 where its descriptors say how many
STARLING_MAX_CONNECTIONS = variables.count("STARLING_MAX_CONNECTIONS", 0, least=0)
STARLING_MAX_CONNECTIONS_AN_ADDRESS = variables.count("STARLING_MAX_CONNECTIONS_AN_ADDRESS", 0, least=0)
STARLING_SILENT_CONNECTION_S = variables.count("STARLING_SILENT_CONNECTION_S", 10)

# Connections to clouds
STARLING_MASTER_KEYS = variables.words("STARLING_MASTER_KEYS")
STARLING_PRICES = (
    Path(variables.text("STARLING_PRICES", "")) if variables.text("STARLING_PRICES", "") else None
)
STARLING_AWS_PRINCIPAL = variables.text("STARLING_AWS_PRINCIPAL", "")
STARLING_AWS_ENDPOINT = variables.text("STARLING_AWS_ENDPOINT", "").rstrip("/")
STARLING_AZURE_ENDPOINT = variables.text("STARLING_AZURE_ENDPOINT", "").rstrip("/")
STARLING_EMULATOR_CA = variables.text("STARLING_EMULATOR_CA", "")

# Alerts
STARLING_DISK_ALERT_MB = variables.count("STARLING_DISK_ALERT_MB", 1000, least=0)
STARLING_ALERT_HOSTS = [word.lower() for word in variables.words("STARLING_ALERT_HOSTS")]

# Programs
STARLING_API_REQUESTS_A_MINUTE = variables.count("STARLING_API_REQUESTS_A_MINUTE", 600)
STARLING_METRICS_TOKEN = variables.text("STARLING_METRICS_TOKEN", "")

FAILPOINTS = variables.text("STARLING_FAILPOINTS", "")

DEBUG = variables.flag("DEBUG")
SECRET_KEY = variables.text("SECRET_KEY", "") or (
    secrets.token_urlsafe(64)
    if STARLING_HEADLESS
    else variables.generated_secret_key(STARLING_DATA / "secret_key")
)

_base = urlsplit(STARLING_BASE_URL)
_https = _base.scheme == "https"
# This machine's own names always belong to it: health checks use them.
ALLOWED_HOSTS = [
    *(variables.words("ALLOWED_HOSTS") or [_base.hostname or "localhost"]),
    "localhost",
    "127.0.0.1",
    "[::1]",
]
CSRF_TRUSTED_ORIGINS = variables.words("CSRF_TRUSTED_ORIGINS") or ([STARLING_BASE_URL] if _https else [])

INSTALLED_APPS = [
    "webapp",  # for its commands: up, prepare
    "webapp.comparing.abtests",
    "webapp.accounts",
    "webapp.alerts",
    "webapp.api",
    "webapp.budgets",
    "webapp.connections",
    "webapp.connections.gateway",
    "webapp.comparing",
    "webapp.datasets",
    "webapp.jobs",
    "webapp.accounts.limits",
    "webapp.money",
    "webapp.overview",
    "webapp.comparing.predictions",
    "webapp.resources.profiling",
    "webapp.overview.projects",
    "webapp.schedulers",
    "webapp.sharing",
    "webapp.jobs.surfaces",
    "webapp.resources",
    "webapp.reports",
    "webapp.trackers",
    "django.contrib.admin.apps.SimpleAdminConfig",  # webapp/admin.py names the tables; others' are not looked for
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "channels",
    "csp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "webapp.http.responses.CompressedPages",
    "csp.middleware.CSPMiddleware",
    "webapp.accounts.sessions.SessionsOfReaders",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "webapp.http.responses.ActionsAskedAgain",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# Database: the truth. On SQLite, writers queue from the start of their transaction (IMMEDIATE) and never fail late.
_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=20000;",
}
DATABASES = {
    "default": dj_database_url.parse(
        variables.text("DATABASE_URL", f"sqlite:///{STARLING_DATA / 'starling.sqlite3'}"),
        conn_max_age=600,
        conn_health_checks=True,
    )
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = _SQLITE_OPTIONS
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Counts that limits go by are shared and outlive a restart; figures that are dear to work out stay in their process.
CACHES = {
    "default": {"BACKEND": "webapp.accounts.limits.counters.SharedCache"},
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}


def _redis_url() -> str:
    """The given URL; otherwise the one that a running `manage.py up` wrote down; otherwise the default."""
    written_by_supervisor = STARLING_DATA / "redis.url"
    if not variables.text("REDIS_URL", "") and written_by_supervisor.exists():
        return written_by_supervisor.read_text().strip()
    return variables.text("REDIS_URL", "redis://127.0.0.1:6379/0")


# For `manage.py up`: whether it must start a server of its own, and with which program.
REDIS_URL_GIVEN = bool(variables.text("REDIS_URL", ""))
REDIS_SERVER = variables.text("REDIS_SERVER", "")
STARLING_BASE_URL_GIVEN = bool(variables.text("STARLING_BASE_URL", ""))

# Redis: hints only. Short timeouts and no retries: a dead Redis must never hold up a request.
REDIS_URL = _redis_url()

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 300,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    "health_check_interval": 10,
    "unacked_restore_throttle": 1,
    "global_keyprefix": "starling:",
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
# A task that watches a job waits for hours and computes nothing: threads, many, each taking one message at a time.
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = 32
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3.0
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_REDIRECT_STDOUTS = False
# In memory, by a clock that no one sets: the default scheduler keeps its state in a pickle; ours is in the database.
CELERY_BEAT_SCHEDULER = "webapp.celery:SteadyScheduler"
CELERY_BEAT_SCHEDULE = {
    # Unread ticks say nothing new: they expire instead of piling up while no worker runs.
    "tick": {"task": "webapp.jobs.tasks.tick", "schedule": 5.0, "options": {"expires": 5.0}},
    "background": {"task": "webapp.background.tick", "schedule": 5.0, "options": {"expires": 5.0}},
    "abtests": {"task": "webapp.comparing.abtests.tasks.tick", "schedule": 5.0, "options": {"expires": 5.0}},
    "comparing": {"task": "webapp.comparing.tasks.tick", "schedule": 15.0, "options": {"expires": 15.0}},
    "predictions": {
        "task": "webapp.comparing.predictions.tasks.tick",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "schedulers": {"task": "webapp.schedulers.tasks.tick", "schedule": 5.0, "options": {"expires": 5.0}},
    "reports": {"task": "webapp.reports.tasks.tick", "schedule": 10.0, "options": {"expires": 10.0}},
    "mailboxes": {
        "task": "webapp.connections.gateway.tasks.tidy",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "resources": {"task": "webapp.resources.tasks.look", "schedule": 10.0, "options": {"expires": 10.0}},
    "alerts": {"task": "webapp.alerts.tasks.tick", "schedule": 2.0, "options": {"expires": 2.0}},
    "anomalies": {
        "task": "webapp.alerts.tasks.look_for_anomalies",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
}

# Reports of exceptions never show what was posted or what a function held, in debugging either.
DEFAULT_EXCEPTION_REPORTER_FILTER = "webapp.http.responses.ValueRedaction"

# Accounts: an e-mail address and a password.
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "webapp.accounts.sign_in.AddressBackend",
    "django.contrib.auth.backends.ModelBackend",  # sessions that began before there was the first
]
# Several accounts may claim an address; it belongs to the one that confirms it (see webapp/accounts/sign_in.py).
SILENCED_SYSTEM_CHECKS = ["auth.W004"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
ACCOUNT_ADAPTER = "webapp.accounts.sign_in.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_UNIQUE_EMAIL = True
ACCOUNT_PREVENT_ENUMERATION = "strict"  # no form reveals who has an account
ACCOUNT_FORMS = {"reset_password": "webapp.accounts.sign_in.ResetForm"}
ACCOUNT_EMAIL_VERIFICATION = "optional"  # no mail server is needed to get in
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Starling: "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = _base.scheme
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False
ACCOUNT_SESSION_REMEMBER = True
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"


# E-mails are files until the operator configures a mail server.
STARLING_SMTP_URL = variables.text("STARLING_SMTP_URL", "")
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = STARLING_DATA / "mail"
EMAIL_TIMEOUT = 10.0
if STARLING_SMTP_URL:
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, EMAIL_USE_SSL, EMAIL_USE_TLS = (
        variables.smtp_server(STARLING_SMTP_URL)
    )
DEFAULT_FROM_EMAIL = variables.text("STARLING_MAIL_FROM", f"starling@{_base.hostname or 'localhost'}")

SESSION_ENGINE = "webapp.accounts.hashed_sessions"
SESSION_SERIALIZER = "django.contrib.sessions.serializers.JSONSerializer"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
SECURE_SSL_REDIRECT = False  # the proxy that ends TLS redirects; health checks come to us in plain HTTP
# Sent with answers that went out by https as far as a trusted proxy says.
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if _https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = False
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
FILE_UPLOAD_PERMISSIONS = None  # the process's own mask, which gives other users of the machine nothing

# Nothing from other hosts, nothing inline. 'self' in connect-src covers our own websocket; data: is Bootstrap's icons.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# Static files: ours from static/, other people's from node_modules, under names that change with their content.
STATIC_URL = "/static/"
STATIC_ROOT = STARLING_DATA / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "webapp.http.static_files.AppFinder",
    "webapp.http.static_files.VendorFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "webapp.http.static_files.ManifestStorage"},
}
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
# Maps are for developers' consoles; the rest is packed already.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ("map", "woff2", "png", "webp", "gz", "br")

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{levelname} {name}: {message}", "style": "{"}},
    "filters": {"addresses": {"()": "webapp.http.responses.AddressRedaction"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["addresses"]}},
    "root": {"handlers": ["stderr"], "level": variables.text("STARLING_LOG_LEVEL", "INFO").upper()},
    "loggers": {
        # Two lines a message, every 5 seconds, are of no use.
        "celery": {"level": "WARNING"},
        # Below this they write whole answers into the log, those with a role's session credentials as well.
        "boto3": {"level": "INFO"},
        "botocore": {"level": "INFO"},
        "azure": {"level": "WARNING"},
        "msal": {"level": "WARNING"},
        # A line for each table of each font.
        "fontTools": {"level": "WARNING"},
        "fpdf": {"level": "WARNING"},
    },
}
