"""People, projects and memberships. Every other object in Starling belongs to a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from allauth.account.models import EmailAddress
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models import Exists, F, OuterRef
from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.http.form_versions import FormVersion, Value


class UserManager(BaseUserManager["User"]):
    """Creates people from an e-mail address and a password. There are no user names."""

    use_in_migrations = True

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        if not email:
            raise ValueError("A person needs an e-mail address.")
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, **{**fields, "is_staff": True, "is_superuser": True})

    def get_by_natural_key(self, username: str | None) -> User:
        """Of several accounts with one address, the account that has confirmed it, else the oldest."""
        confirmed = EmailAddress.objects.filter(
            user_id=OuterRef("pk"), email=OuterRef("email"), verified=True
        )
        accounts = self.filter(email__iexact=username).annotate(confirmed=Exists(confirmed))
        account = accounts.order_by("-confirmed", "pk").first()
        if account is None:
            raise self.model.DoesNotExist
        return account


class User(AbstractBaseUser, PermissionsMixin):
    """A person. Signs in with an e-mail address, which is stored in lower case.

    Several accounts may claim one address, so that sign-up reveals no account. At most one of them has confirmed it,
    and only a confirmed address counts.
    """

    email = models.EmailField(db_index=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    date_joined = models.DateTimeField(default=timezone.now)
    access_epoch = models.PositiveIntegerField(default=0)
    """Raised by a new password and by signing out everywhere. Sessions and tokens of an earlier epoch are invalid."""

    objects: ClassVar[UserManager] = UserManager()
    _password: str | None

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.email

    def save(self, *args: Any, update_fields: Iterable[str] | None = None, **kwargs: Any) -> None:
        # Django keeps a new plain password until it is saved. Rehashing an old password leaves `_password` None.
        if self._password is not None and not self._state.adding:
            self.access_epoch += 1
            update_fields = None if update_fields is None else {*update_fields, "access_epoch"}
        super().save(*args, update_fields=update_fields, **kwargs)

    def end_access(self) -> None:
        """End every session, socket and token of this person."""
        type(self).objects.filter(pk=self.pk).update(access_epoch=F("access_epoch") + 1)
        self.refresh_from_db(fields=["access_epoch"])

    def get_session_auth_hash(self) -> str:
        return self._of_this_epoch(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        return map(self._of_this_epoch, super().get_session_auth_fallback_hash())

    def _of_this_epoch(self, password_hash: str) -> str:
        # Sessions from before there were epochs stay good until the first one ends.
        if self.access_epoch == 0:
            return password_hash
        salt = "starling.accounts.access_epoch"
        return salted_hmac(salt, f"{password_hash}:{self.access_epoch}", algorithm="sha256").hexdigest()


class Role(models.TextChoices):
    """What a member may do, weakest first: see; also launch, stop and pay; also decide who is a member."""

    VIEWER = "viewer", "Viewer"
    EDITOR = "editor", "Editor"
    OWNER = "owner", "Owner"

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    def allows(self, needs: str) -> bool:
        return self.rank >= Role(needs).rank


class Project(models.Model):
    """A project owns jobs and money. The addresses of its pages begin with its slug.

    An archived project is read-only: its members see everything and change nothing (see `access`).
    """

    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=60, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)
    people: models.ManyToManyField[User, Membership] = models.ManyToManyField(
        User, through="Membership", related_name="projects"
    )

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one project. A project always keeps at least one owner (see services)."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    created_at = models.DateTimeField(default=timezone.now)
    guide_put_away_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "project"], name="one_membership_a_person_and_project"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"

    def allows(self, needs: str) -> bool:
        """Whether the role is enough. In an archived project every member may only look."""
        frozen = self.project.archived_at is not None and needs != Role.VIEWER
        return not frozen and Role(self.role).allows(needs)

    @property
    def version(self) -> FormVersion:
        """What the forms that change or remove this member are drawn from."""
        role = Value("The role", self.role, "role", dict(Role.choices))
        return FormVersion(f"member {self.pk}", (role,))

    @property
    def is_owner(self) -> bool:
        """Whether the role is owner, in an archived project too."""
        return self.role == Role.OWNER


class SignInLink(models.Model):
    """A link that signs one person in, once. Only the hash of its secret is stored."""

    secret_sha256 = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"a link for {self.user}"


class Invitation(models.Model):
    """A role in a project for one person: the person who has confirmed the address, or who has the link.

    Only the hash of the link's secret is stored. Accepting deletes the row. `account` is the account that was created
    with the link where sign-up is closed: a link creates one.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role.choices)
    secret_sha256 = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    account = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "email"], name="one_invitation_an_address_and_project"
            ),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="invitation_role_is_known"),
        ]
        indexes = [models.Index(fields=["email"], name="invitation_of_address")]

    def __str__(self) -> str:
        return f"{self.email} is invited to {self.project} as {self.role}"
