package quality

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// embeddingKeyVariable holds the key of the embeddings server: a flag would
// show it to everybody on the machine.
const embeddingKeyVariable = "REMORA_RECALL_EMBEDDINGS_KEY"

// embeddingFlags name a server to measure recall with.
type embeddingFlags struct{ cfg embed.Config }

func (f *embeddingFlags) register(flags *flag.FlagSet) {
	f.cfg = embed.DefaultConfig()
	f.cfg.QueryTimeout = time.Minute // figures are of rankings, not of the server's haste
	flags.StringVar(&f.cfg.URL, "embeddings", "", "`URL` of an OpenAI-compatible embeddings server; its key is in "+embeddingKeyVariable)
	flags.StringVar(&f.cfg.Model, "embedding-model", "", "`name` of its model")
	flags.IntVar(&f.cfg.Dimensions, "embedding-dimensions", 0, "dimensions to ask for (0: the model's own)")
	flags.StringVar(&f.cfg.QueryPrefix, "embedding-query-prefix", "", "`text` before every query")
	flags.StringVar(&f.cfg.DocumentPrefix, "embedding-document-prefix", "", "`text` before every memory")
}

// client makes the engine use the server; nil if none is named.
func (f *embeddingFlags) client(cfg *recall.Config) (*embed.Client, error) {
	if f.cfg.URL == "" {
		return nil, nil
	}
	f.cfg.Key = redact.Secret(os.Getenv(embeddingKeyVariable))
	client, err := embed.New(f.cfg, nil)
	if err != nil {
		return nil, cli.UsageError(err.Error())
	}
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		return nil, fmt.Errorf("embeddings: %w", err)
	}
	cfg.Vectors.Embedder = client
	cfg.Vectors.Redact = func(text string) string { text, _ = red.Redact(text); return text }
	return client, nil
}

// embedded waits until the memories of a scope have their vectors.
func (m *memory) embedded(ctx context.Context, scope storage.Scope) error {
	if !m.embeds {
		return nil
	}
	if _, err := m.engine.Recall(ctx, recall.Request{Scope: scope, Newest: "load the index"}); err != nil {
		return fmt.Errorf("recall: %w", err)
	}
	for {
		v := m.engine.Stats().Vectors
		if v.Waiting == 0 {
			return nil
		}
		if v.Failures > 0 {
			return errors.New("embeddings: the server failed; remora check tells more")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
