"""Claims at firstcome as a shop does: run it with Locust, and see docs/operate.md.

    KEY=… CAMPAIGN=rehearsal locust -f examples/load/locustfile.py --headless \
        --host http://127.0.0.1:8080 --users 200 --spawn-rate 200 --run-time 1m

Each of Locust's users claims for one new user id after the other, and asks again until the answer is known. The row
"claim" has requests, and "until known" has the time from a user's first request to the outcome. Locust counts answers
and does not check them: prove afterwards with "firstcome audit" that the coupons are right, or use "firstcome load",
which holds each answer against its coupon.
"""

import os
import random
import time
import uuid
from urllib.parse import quote

from locust import HttpUser, constant, events, task

CAMPAIGN = os.environ.get("CAMPAIGN", "rehearsal")
KEY = os.environ.get("KEY", "")
PATIENCE = 60  # seconds for which a user asks again


class Shopper(HttpUser):
    wait_time = constant(0)

    @task
    def drop(self):
        self.claim("user-" + uuid.uuid4().hex)

    def claim(self, user):
        """Asks for one user until there is an outcome, and returns it; "" if there is none."""
        began, wait = time.monotonic(), 0.1
        while True:
            status, outcome, retry_after = self.ask(user)
            if outcome:
                self.report("until known: " + outcome, began)
                return outcome
            if not (status < 300 or status == 429 or status >= 500):
                return ""  # a mistake, which "ask" has counted: asking again does not help
            # No sooner than the server says, and not all at once.
            pause = retry_after + random.random() * wait
            if time.monotonic() + pause > began + PATIENCE:
                self.report("until known", began, TimeoutError("still unknown: there may be a coupon"))
                return ""
            time.sleep(pause)  # Locust has made it yield to the other users
            wait = min(2 * wait, 5)

    def ask(self, user):
        """Returns the status (0: no answer), the outcome ("": none) and the seconds of Retry-After."""
        headers = {"Authorization": "Bearer " + KEY} if KEY else {}
        path = "/v1/campaigns/" + quote(CAMPAIGN, safe="") + "/claims"
        # A claim waits for at most 15 s at the server.
        with self.client.post(path, json={"user_id": user}, headers=headers, timeout=20, name="claim", catch_response=True) as response:
            status, outcome = response.status_code, ""
            if 0 < status < 500 and status != 429:  # a 5xx is unknown, whatever its body says
                try:
                    outcome = response.json().get("outcome") or ""
                except ValueError:
                    pass  # an answer that broke off
            if outcome:
                response.success()  # 403 and 410 are answers
            else:
                response.failure(f"no outcome, status {status}")
            return status, outcome, seconds(response.headers or {})

    @staticmethod
    def report(name, began, error=None):
        events.request.fire(request_type="USER", name=name, response_time=1000 * (time.monotonic() - began), response_length=0, exception=error, context={})


def seconds(headers):
    """Retry-After in seconds. A proxy may say it as a date, which counts as 0."""
    try:
        return max(0, int(headers.get("Retry-After", "0")))
    except ValueError:
        return 0
