package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

func TestUsageNamesAllCommands(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"help"}, os.Getenv, nil, &out, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		if !strings.Contains(out.String(), c.name) || !strings.Contains(out.String(), c.summary) {
			t.Errorf("usage lacks %s:\n%s", c.name, out.String())
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string // part of the message
	}{
		{nil, "no command"},
		{[]string{"nonsense"}, `unknown command "nonsense"`},
		{[]string{"load", "-fast"}, "-fast"},
		{[]string{"upstream", "-events", "0"}, "-events"},
		{[]string{"control", "-users", "0"}, "-users"},
		{[]string{"reverseproxy"}, "-upstream"},
	} {
		err := run(t.Context(), tc.args, os.Getenv, nil, &bytes.Buffer{}, &bytes.Buffer{})
		if _, ok := errors.AsType[cli.UsageError](err); !ok || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want a usage error that names %s", tc.args, err, tc.want)
		}
	}
}
