"""Claims through the client that openapi-generator makes of openapi.yaml for Python."""

import sys

import openapi_client
from openapi_client.exceptions import ApiException

server, prefix = sys.argv[1:]
claims = openapi_client.ClaimsApi(openapi_client.ApiClient(openapi_client.Configuration(host=server)))


def tell(name, answer):
    coupon = answer.coupon
    number = coupon.number if coupon else answer.ticket
    benefit = coupon.benefit["percent"] if coupon and coupon.benefit else "-"
    print(name, answer.outcome, number, benefit)


for name in ["open", "open", "rich", "sold", "early", "paused", "closed", "line", "none"]:
    try:
        tell(name, claims.claim(f"{prefix}-{name}", openapi_client.ClaimRequest(user_id="mina")))
    except ApiException as refused:
        print(name, openapi_client.Problem.from_json(refused.body).code, "-", "-")
for name in ["open", "line"]:
    tell(name, claims.read_claim(f"{prefix}-{name}", "mina"))
