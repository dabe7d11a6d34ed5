"""Fine-tune a small causal language model on instruction records."""

import argparse
import json
import logging
import sys

from torch.utils.data import Dataset
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

logger = logging.getLogger(__name__)


class InstructionDataset(Dataset):
    def __init__(self, path, tokenizer, max_length):
        self.examples = []
        with open(path, encoding="utf-8") as f:
            for line in f:
                record = json.loads(line)
                text = f"### Instruction:\n{record['instruction']}\n### Response:\n{record['output']}"
                self.examples.append(tokenizer(text, truncation=True, max_length=max_length))

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return self.examples[i]


def compute_metrics(prediction):
    logits, labels = prediction
    keep = labels[:, 1:] != -100
    return {"accuracy": float((logits[:, :-1].argmax(-1) == labels[:, 1:])[keep].mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_file", default="/mnt/data/sft/train.jsonl")
    parser.add_argument("--validation_file", default="/mnt/data/sft/valid.jsonl")
    parser.add_argument("--tokenizer", default="/mnt/data/sft/tokenizer")
    parser.add_argument("--output_dir", default="/home/user/run/output")
    parser.add_argument("--max_length", type=int, default=64)
    parser.add_argument("--max_steps", type=int, default=120)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--save_steps", type=int, default=50)
    parser.add_argument("--eval_steps", type=int, default=50)
    parser.add_argument("--num_workers", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    opts = parser.parse_args()
    logging.basicConfig(
        format="%(asctime)s - %(levelname)s - %(name)s - %(message)s",
        datefmt="%m/%d/%Y %H:%M:%S",
        handlers=[logging.StreamHandler(sys.stdout)],
        level=logging.INFO,
    )
    args = TrainingArguments(
        output_dir=opts.output_dir,
        max_steps=opts.max_steps,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        learning_rate=opts.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=10,
        logging_steps=5,
        save_steps=opts.save_steps,
        eval_steps=opts.eval_steps,
        eval_strategy="steps",
        save_total_limit=2,
        dataloader_num_workers=opts.num_workers,
        use_cpu=True,
        report_to=[],
        seed=42,
    )
    logger.warning(
        "Process rank: %s, device: %s, n_gpu: %s, distributed training: %s",
        args.local_rank,
        args.device,
        args.n_gpu,
        args.parallel_mode.value,
    )
    set_seed(args.seed)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(opts.tokenizer)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=128, n_embd=64, n_layer=2, n_head=4)
    model = GPT2LMHeadModel(config)
    logger.info("Training new model from scratch - Total size=%.2fM params", model.num_parameters() / 2**20)
    train_dataset = InstructionDataset(opts.train_file, tokenizer, opts.max_length)
    eval_dataset = InstructionDataset(opts.validation_file, tokenizer, opts.max_length)
    logger.info("%d training examples, %d validation examples", len(train_dataset), len(eval_dataset))
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_dataset,
        eval_dataset=eval_dataset,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        compute_metrics=compute_metrics,
    )
    result = trainer.train(resume_from_checkpoint=opts.resume or None)
    trainer.save_model()
    trainer.log_metrics("train", result.metrics)
    metrics = trainer.evaluate()
    trainer.log_metrics("eval", metrics)


if __name__ == "__main__":
    main()
