"""Write the records and a tokenizer: prepare.py FOLDER TRAIN VALID"""

import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

folder, train, valid = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
words = [
    "add",
    "sum",
    "two",
    "three",
    "list",
    "sort",
    "the",
    "numbers",
    "word",
    "of",
    "and",
    "in",
    "to",
    "a",
    "name",
    "city",
    "river",
    "count",
    "letters",
    "reverse",
    "short",
    "long",
    "text",
]
rng = random.Random(5)
records = [
    {
        "instruction": " ".join(rng.choices(words, k=rng.randint(4, 12))),
        "output": " ".join(rng.choices(words, k=rng.randint(3, 20))),
    }
    for _ in range(train + valid)
]
for name, rows in (("train", records[:train]), ("valid", records[train:])):
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.train_from_iterator(
    (r["instruction"] + " ### Instruction: Response: " + r["output"] for r in records),
    trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<pad>", "</s>"], show_progress=False),
)
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="</s>")
fast.save_pretrained(folder / "tokenizer")
