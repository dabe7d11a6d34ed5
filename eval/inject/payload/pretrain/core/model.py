import torch
import torch.nn.functional as F
from torch import nn


class ParallelAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.dense = nn.Linear(hidden, hidden)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.query_key_value(x).view(b, s, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.dense(out.transpose(1, 2).reshape(b, s, h))


class ParallelMLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.dense_h_to_4h = nn.Linear(hidden, 4 * hidden)
        self.dense_4h_to_h = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        return self.dense_4h_to_h(F.gelu(self.dense_h_to_4h(x)))


class TransformerLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(hidden)
        self.self_attention = ParallelAttention(hidden, heads)
        self.post_attention_layernorm = nn.LayerNorm(hidden)
        self.mlp = ParallelMLP(hidden)

    def forward(self, x):
        x = x + self.self_attention(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class GPTModel(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.word_embeddings = nn.Embedding(args.vocab_size, args.hidden_size)
        self.position_embeddings = nn.Embedding(args.seq_length, args.hidden_size)
        self.layers = nn.ModuleList(
            TransformerLayer(args.hidden_size, args.num_attention_heads) for _ in range(args.num_layers)
        )
        self.final_layernorm = nn.LayerNorm(args.hidden_size)

    def forward(self, tokens, labels):
        positions = torch.arange(tokens.shape[1])
        x = self.word_embeddings(tokens) + self.position_embeddings(positions)
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.final_layernorm(x), self.word_embeddings.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)

    def num_parameters(self):
        return sum(p.numel() for p in self.parameters())
