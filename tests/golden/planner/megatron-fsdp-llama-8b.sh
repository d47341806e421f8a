# Llama-3.1-8B: dp64 zero3 mb1 mxfp8
# run on every node, with NODE_RANK and MASTER_ADDR set
torchrun --nnodes 8 --nproc-per-node 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500 \
  pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --kv-channels 128 --group-query-attention --num-query-groups 8 \
  --max-position-embeddings 4096 --position-embedding-type rope --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --attention-dropout 0.0 --hidden-dropout 0.0 \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 \
  --use-distributed-optimizer --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor --no-gradient-accumulation-fusion --init-model-with-meta-device --overlap-grad-reduce --overlap-param-gather \
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 2048 --train-iters 119209 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --clip-grad 1.0 \
  --bf16 --fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather --attention-backend flash --cross-entropy-loss-fusion \
  --mock-data --tokenizer-type NullTokenizer --vocab-size 128256 --split 99,1,0 --log-interval 1 --log-throughput --eval-iters 0
