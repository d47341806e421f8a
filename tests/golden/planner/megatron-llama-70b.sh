# Llama-3.1-70B: tp8 pp4 vpp5 dp64 zero1 mb1 recompute=selective bf16
# run on every node, with NODE_RANK and MASTER_ADDR set
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes 256 --nproc-per-node 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500 \
  pretrain_gpt.py \
  --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --kv-channels 128 --group-query-attention --num-query-groups 8 \
  --max-position-embeddings 4096 --position-embedding-type rope --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --attention-dropout 0.0 --hidden-dropout 0.0 \
  --tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 5 \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 2048 --train-iters 119209 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --clip-grad 1.0 \
  --bf16 --attention-backend flash --cross-entropy-loss-fusion \
  --recompute-granularity selective --recompute-modules layernorm \
  --mock-data --tokenizer-type NullTokenizer --vocab-size 128256 --split 99,1,0 --log-interval 1 --log-throughput --eval-iters 0
