"""Messages to people: Slack, webhooks, e-mail, commands; once of each incident, and again when it changes."""

from triage.notify.channels import Channel, channels
from triage.notify.message import Message
from triage.notify.notifier import Notifier
from triage.notify.of_diagnosis import of_diagnosis
from triage.notify.send import Delivery, Sent, send

__all__ = ["Channel", "Delivery", "Message", "Notifier", "Sent", "channels", "of_diagnosis", "send"]
