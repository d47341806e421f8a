# DeepSeek-V3: tp2 pp16 vpp2 ep32 dp64 zero1 mb1 recompute=selective fp8
# run on every node, with NODE_RANK and MASTER_ADDR set
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes 256 --nproc-per-node 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500 \
  pretrain_gpt.py \
  --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 \
  --max-position-embeddings 4096 --position-embedding-type rope --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --attention-dropout 0.0 --hidden-dropout 0.0 \
  --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 \
  --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --moe-layer-freq '([0]*3+[1]*58)' --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-4 --moe-router-dtype fp32 --moe-grouped-gemm --moe-permute-fusion \
  --mtp-num-layers 1 \
  --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 16 --pipeline-model-parallel-layout 'Et|(tt|)*30mL' \
  --expert-model-parallel-size 32 --expert-tensor-parallel-size 1 --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 2048 --train-iters 119209 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --clip-grad 1.0 \
  --bf16 --fp8-format hybrid --fp8-recipe delayed --fp8-param-gather --attention-backend flash --cross-entropy-loss-fusion \
  --recompute-granularity selective --recompute-modules layernorm moe_act \
  --mock-data --tokenizer-type NullTokenizer --vocab-size 129280 --split 99,1,0 --log-interval 1 --log-throughput --eval-iters 0
