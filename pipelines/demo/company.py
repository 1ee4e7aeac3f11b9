"""Larkfield, the company of the demo: its accounts, commitments and everything that is always on."""

from __future__ import annotations

from pipelines.demo.scenario import (
    Account,
    Node,
    Reservation,
    ReservedInstances,
    SavingsPlan,
    Service,
    fleet,
    utc,
)

PAYER = Account("111122223333", "larkfield-payer")
NLP = Account("222233334444", "larkfield-nlp")
VISION = Account("333344445555", "larkfield-vision")
PLATFORM = Account("012345678901", "larkfield-platform")  # the leading zero is part of the id
SERVING = Account("444455556666", "larkfield-serving")  # it shares no discounts with the others

MONTHS = ("2026-06", "2026-07")

SAVINGS_PLAN = SavingsPlan(
    arn="arn:aws:savingsplans::111122223333:savingsplan/5b1c7d0e-2f3a-4c9b-8d6e-91a0c4f7e321",
    account=PAYER,
    usd_per_hour=0.75,
    started_at=utc("2026-02-01 00:00:00"),
    ended_at=utc("2027-02-01 00:00:00"),
)

# One c6i was shut down in June: a third of that reservation has been unused since.
RESERVED_INSTANCES = (
    ReservedInstances(
        "6d2f8c10-71be-4a55-9c0d-33f1e2a9b704",
        "AmazonEC2",
        "BoxUsage:c6i.4xlarge",
        PLATFORM,
        "us-east-1",
        3,
        utc("2026-01-15 00:00:00"),
        utc("2027-01-15 00:00:00"),
        usd_per_hour=0.4284,
    ),
    ReservedInstances(
        "ri-2026-06-10-09-00-00-128",
        "AmazonRDS",
        "InstanceUsage:db.r6g.xl",
        PLATFORM,
        "us-west-2",
        1,
        utc("2026-06-10 09:00:00"),
        utc("2027-06-10 09:00:00"),
        usd_per_hour=0.1130,
        upfront_usd=990.0,
    ),
)

# Bought in June, used in July; it starts and ends at half past, and was returned a day early.
TRAINIUM_BLOCK = Reservation(
    "trn1-block",
    "trn1.32xlarge",
    NLP,
    "us-west-2b",
    2,
    utc("2026-07-08 11:30:00"),
    utc("2026-07-11 11:30:00"),
    purchased_at=utc("2026-06-24 15:07:44"),
    fee_per_hour=9.532,
)
P4D_RESERVATION = Reservation(
    "p4d-odcr",
    "p4d.24xlarge",
    VISION,
    "us-west-2a",
    1,
    utc("2026-07-02 10:00:00"),
    utc("2026-07-06 16:30:00"),
)
RESERVATIONS = (TRAINIUM_BLOCK, P4D_RESERVATION)

_JUNE, _AUGUST = utc("2026-06-01 00:00:00"), utc("2026-08-01 00:00:00")
_RESEARCH = {"team": "research", "owner": "jun"}
_EKS = {"team": "platform", "environment": "prod"}

# Servers of models (demo/serving.py): embeddings around the clock, an assistant that is idle by night.
_SERVED = utc("2026-06-22 00:00:00")
EMBED_NODE = Node("embed", "inf2.xlarge", SERVING, "us-east-1a", tags=_EKS, launched_at=_SERVED, ended_at=_AUGUST)
ASSIST_NODE = Node("assist", "g6e.xlarge", SERVING, "us-east-1a", tags=_EKS, launched_at=_SERVED, ended_at=_AUGUST)

STANDING_NODES = (
    EMBED_NODE,
    ASSIST_NODE,
    # Services of the cluster and of the company itself: little next to training.
    Node("eks-worker", "m6i.large", PLATFORM, "us-west-2a", tags=_EKS, launched_at=_JUNE, ended_at=_AUGUST),
    *fleet(Node("api", "c6i.4xlarge", PLATFORM, "us-east-1a", tags=_EKS, launched_at=_JUNE, ended_at=_AUGUST), 2),
    Node(
        "api-canary",
        "c6i.4xlarge",
        PLATFORM,
        "us-east-1b",
        tags=_EKS,
        launched_at=_JUNE,
        ended_at=utc("2026-06-20 14:21:37"),
    ),
    # A notebook that is always on, and the day its user tried a whole p4d: far from the team's history.
    Node(
        "notebook",
        "g6.xlarge",
        VISION,
        "us-east-1b",
        tags=_RESEARCH,
        launched_at=utc("2026-06-02 08:31:17"),
        ended_at=_AUGUST,
    ),
    Node(
        "trial",
        "p4d.24xlarge",
        VISION,
        "us-east-1b",
        tags=_RESEARCH,
        launched_at=utc("2026-07-21 09:12:40"),
        ended_at=utc("2026-07-21 15:47:05"),
    ),
    # No run: an engineer's sandbox that was left on over a weekend.
    Node(
        "sandbox",
        "g5.12xlarge",
        VISION,
        "us-east-1b",
        tags={"owner": "maria"},
        volume_gib=500,
        launched_at=utc("2026-07-16 13:44:05"),
        ended_at=utc("2026-07-20 09:03:51"),
    ),
)

SHARED_CLUSTER = "larkfield-train"

_CHATBOT = "application-inference-profile/chatbot"
SERVICES = (
    Service("cluster", PLATFORM, "us-west-2", 1, f"cluster/{SHARED_CLUSTER}"),
    Service("nat_hours", PLATFORM, "us-west-2", 1, "natgateway/nat-0f31c9a27be4d5061"),
    Service("nat_bytes", PLATFORM, "us-west-2", 38.0, "natgateway/nat-0f31c9a27be4d5061", 0.6),
    Service("logs", PLATFORM, "us-west-2", 1.9, "log-group:/larkfield/train", 0.5),
    Service("metrics", PLATFORM, "us-west-2", 420, "", 0.1),
    Service("database", PLATFORM, "us-west-2", 1, "db:mlflow", tags={"team": "platform"}),
    Service("function_seconds", PLATFORM, "us-east-1", 4000, "function:ingest", 0.7),
    Service("function_calls", PLATFORM, "us-east-1", 50000, "function:ingest", 0.7),
    Service("bucket_puts", NLP, "us-west-2", 5200, "larkfield-nlp-checkpoints", 0.8, tags={"team": "nlp"}),
    Service("bucket", NLP, "us-west-2", 46000, "larkfield-nlp-checkpoints", 0.05, True, {"team": "nlp"}),
    Service("bucket", VISION, "us-west-2", 71000, "larkfield-vision-data", 0.02, True, {"team": "vision"}),
    Service("bucket", PLATFORM, "us-east-1", 9000, "larkfield-artifacts", 0.02, True),
    # A chatbot that reads most of each prompt from the cache, digests by night, and a pilot's model still paid for.
    Service("chat_input", NLP, "us-west-2", 1240, _CHATBOT, 0.9, tags={"team": "nlp"}),
    Service("chat_output", NLP, "us-west-2", 85, _CHATBOT, 0.9, tags={"team": "nlp"}),
    Service("chat_cache_read", NLP, "us-west-2", 4000, _CHATBOT, 0.9, tags={"team": "nlp"}),
    Service("digest_input", NLP, "us-west-2", 40000, "", 0.0, True, {"team": "nlp"}),
    Service("digest_output", NLP, "us-west-2", 6000, "", 0.0, True, {"team": "nlp"}),
    Service("model_unit", NLP, "us-west-2", 1, "provisioned-model/pilot", tags={"team": "nlp"}),
)

EDP_RATIO = 0.05
TAX_RATIO = 0.03
# (month, account, amount, day, description): money AWS gave back as a program credit.
CREDITS = (
    ("2026-06", NLP, 1500.0, utc("2026-06-30 00:00:00"), "AWS Migration Acceleration Program 2.0 credit"),
    ("2026-07", NLP, 900.0, utc("2026-07-31 00:00:00"), "AWS Migration Acceleration Program 2.0 credit"),
)
# A refund in July's bill for usage in June: the two dates differ.
REFUNDS = (("2026-07", NLP, 212.4, utc("2026-06-17 00:00:00"), "Refund for impaired trn1.32xlarge on 2026-06-17"),)
MARKETPLACE_USD = 240.0
MARKETPLACE_SELLER = "Fjordlog Software AS"

INVOICES = {
    ("2026-06", "Anniversary"): "1934061171",
    ("2026-06", "Purchase"): "1934061188",
    ("2026-06", "AWS Marketplace"): "EUINUS26-60417",
    ("2026-07", "Anniversary"): "1951070926",
    ("2026-07", "Refund"): "1951070933",
    ("2026-07", "AWS Marketplace"): "EUINUS26-71385",
}
"""Invoice of a line by billing month and bill type; sellers on AWS Marketplace bill by themselves."""
