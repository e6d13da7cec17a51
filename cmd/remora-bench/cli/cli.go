// Package cli holds what the commands of remora-bench share: parsing of flags,
// usage errors, and figures in their reports.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// usageError is a mistake on the command line.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// parseFlags parses the arguments of a command that takes only flags. The flag
// set has already printed what is wrong or, for -h, the flags.
func ParseFlags(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return UsageError(flags.Name() + ": " + err.Error())
	}
	if flags.NArg() > 0 {
		return UsageError(fmt.Sprintf("%s: unexpected argument %q", flags.Name(), flags.Arg(0)))
	}
	return nil
}

// number is a figure in JSON: three decimals, null if it is unknown.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*1000)/1000, 'f', -1, 64), nil
}

// Text returns the figure for people, "-" if it is unknown.
func (n Number) Text(decimals int) string {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', decimals, 64)
}

// BuildRemora builds Remora from the checkout that the command is called in, as
// `make build` does.
func BuildRemora(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "remora")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "github.com/remora-proxy/remora/cmd/remora")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build remora (-remora names a binary): %w\n%s", err, text)
	}
	return path, nil
}
