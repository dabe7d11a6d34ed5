"""Pretrain a GPT model."""

from core.arguments import parse_args
from core.training import pretrain

if __name__ == "__main__":
    pretrain(parse_args())
