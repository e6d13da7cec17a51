package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

func tenantCommand() command {
	return command{
		name:    "tenant",
		summary: "print the hash of an API key, for identity.tenants",
		usage: `remora tenant hash < FILE  [--data DIRECTORY] [--config FILE]

The key is the first line of the standard input, as clients send it to the upstream, so that it stands on no command line
and in no history:

       printenv OPENAI_API_KEY | remora tenant hash

What is printed names the key in identity.tenants of this store, and of no other:

       "identity": {"tenant": "key", "tenants": {"<hash>": "team", "<hash of another key>": "team"}}`,
		define: tenant, minArgs: 1, maxArgs: 1, words: []string{"hash"},
	}
}

func tenant(f *pflag.FlagSet) runner {
	flags := storeFlags(f)
	return func(ctx context.Context, s streams, args []string) error {
		if args[0] != "hash" { // it may be the key, so it is not shown
			return wrongCall("tenant takes hash, and the key on the standard input")
		}
		c, err := sealedConfig(flags, s)
		if err != nil {
			return err
		}
		key, err := readKey(s)
		if err != nil {
			return err
		}
		return withStore(ctx, c, func(store openStore) error { return tenantHash(ctx, s.out, store, key) })
	}
}

// maxKey is the maximum size of a key, in bytes: enough for the longest tokens,
// and a limit for a file that was named by mistake.
const maxKey = 64 << 10

func readKey(s streams) (string, error) {
	if f, ok := s.in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			fmt.Fprintln(s.err, "the key, on one line (the screen shows it):")
		}
	}
	line, err := bufio.NewReader(io.LimitReader(s.in, maxKey+1)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read key: %w", err)
	}
	if len(line) > maxKey {
		return "", fmt.Errorf("read key: it is longer than %d bytes", maxKey)
	}
	key := identity.AuthorizedKey(strings.TrimSpace(line))
	if key == "" {
		return "", errors.New("read key: the first line of the standard input is empty")
	}
	return key, nil
}

// tenantHash works on any store.
func tenantHash(ctx context.Context, w io.Writer, store storage.Local, key string) error {
	secret, err := store.InstallSecret(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, identity.KeyHash(secret, key))
	return err
}
