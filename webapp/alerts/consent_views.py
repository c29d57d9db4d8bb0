"""The page on which a person outside a project accepts or declines its mails. The link in the mail authorises it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.alerts import mail_consent


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def consent(request: HttpRequest, token: str) -> HttpResponse:
    """A GET changes nothing: programs that check mails open every link."""
    one = mail_consent.by_token(token)
    if one is None:
        raise Http404("This link is not complete. Copy the whole line from the mail.")
    if request.method == "POST" and (said := request.POST.get("answer")) in ("yes", "no"):
        mail_consent.answer(one, agrees=said == "yes")
        return redirect("alerts:mail_consent", token)
    return render(request, "alerts/consent.html", {"consent": one})
