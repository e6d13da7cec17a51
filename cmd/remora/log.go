package main

import (
	"io"
	"log/slog"
	"os"
)

// logConfig says what is logged and how. Content, keys and header values never are, at any level.
type logConfig struct {
	level  logLevel
	format logFormat
}

type (
	logLevel  string
	logFormat string
)

const (
	formatAuto logFormat = "auto" // text on a terminal, JSON elsewhere
	formatText logFormat = "text"
	formatJSON logFormat = "json"
)

// slog's names in lower case.
const (
	levelDebug logLevel = "debug"
	levelInfo  logLevel = "info"
	levelWarn  logLevel = "warn"
	levelError logLevel = "error"
)

func (c logConfig) form(w io.Writer, terminal bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.slogLevel()}
	if c.format == formatText || c.format == formatAuto && terminal {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// queued makes a log for whoever must not wait for w. Its last lines are written by done.
func (c logConfig) queued(w io.Writer) (log *slog.Logger, done func()) {
	q := newLogQueue(w)
	log = c.form(q, isTerminal(w))
	q.lost = func(lines int) {
		log.Warn("lines of the log were lost: whoever reads it is slow, or had stopped", "lines", lines)
	}
	go q.run()
	return log, q.close
}

func (c logConfig) slogLevel() slog.Level {
	var level slog.Level // info
	// settings() admits slog's own names only.
	_ = level.UnmarshalText([]byte(c.level))
	return level
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Mode()&os.ModeDevice != 0 && f.Name() != os.DevNull
}
