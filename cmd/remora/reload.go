package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/signals"
)

// reloader applies a changed configuration while Remora runs, as far as that is
// safe.
type reloader struct {
	asked <-chan struct{}
	load  func() (config.Config, error)
	where config.Place
	log   *slog.Logger // of answers
	level *slog.LevelVar
	on    *system
	now   config.Config // in force; owned by run
}

// askedToReload returns a channel that gets something after each SIGHUP. From
// then on, none of them ends the process, as long as ctx lasts.
func askedToReload(ctx context.Context) <-chan struct{} {
	asked := make(chan struct{}, 1)
	signals.OnHangup(ctx, func() {
		select {
		case asked <- struct{}{}:
		default: // it will be read anyhow
		}
	})
	return asked
}

// run reloads whenever it is asked to, until ctx ends.
func (r *reloader) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asked:
			r.reload()
		}
	}
}

// reload reads the configuration again. One with problems changes nothing. What
// has changed is logged by key, without values. A reload is always answered
// in the log whatever its level.
func (r *reloader) reload() {
	next, err := r.load()
	if err != nil {
		problems, ok := errors.AsType[config.Problems](err)
		if !ok {
			r.log.Error("the configuration was not reloaded, nothing has changed", "problem", err)
		}
		for _, p := range problems {
			r.log.Error("the configuration was not reloaded, nothing has changed", "problem", p.Error())
		}
		return
	}
	now, changed, waiting := r.now.Reload(&next)
	r.now = now
	r.apply()
	r.level.Set(now.Log.SlogLevel())
	r.log.Info("the configuration was reloaded", "changed", strings.Join(changed, ", "))
	if len(waiting) > 0 {
		r.log.Warn("settings have changed that take a restart", "settings", strings.Join(waiting, ", "))
	}
	for _, w := range next.Warnings(os.Environ(), r.where) {
		r.log.Warn("configuration warning", "what", w)
	}
}

// apply has the settings that can change while Remora runs take effect.
func (r *reloader) apply() {
	policy, prices, all := r.now.Proxy.Policy, r.now.API.Prices, r.now.InForce()
	r.on.handler.ReplacePolicy(policy)
	r.on.service.ReplacePolicy(policy)
	r.on.service.ReplacePrices(prices)
	r.on.settings.Store(&all)
}
