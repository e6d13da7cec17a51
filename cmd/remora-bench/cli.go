package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
)

// usageError is a mistake on the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// parseFlags parses the arguments of a command that takes only flags. The flag
// set has already printed what is wrong or, for -h, the flags.
func parseFlags(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return usageError(flags.Name() + ": " + err.Error())
	}
	if flags.NArg() > 0 {
		return usageError(fmt.Sprintf("%s: unexpected argument %q", flags.Name(), flags.Arg(0)))
	}
	return nil
}

// number is a figure in JSON: three decimals, null if it is unknown.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*1000)/1000, 'f', -1, 64), nil
}

// Text returns the figure for people, "-" if it is unknown.
func (n number) Text(decimals int) string {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', decimals, 64)
}
