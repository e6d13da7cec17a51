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
	load  func() (config.Config, error)
	where config.Place
	level *slog.LevelVar
	on    *system
	now   config.Config // in force; owned by run
}

// run reloads at each SIGHUP until ctx ends.
func (r *reloader) run(ctx context.Context) {
	asked := make(chan struct{}, 1)
	signals.OnHangup(ctx, func() {
		select {
		case asked <- struct{}{}:
		default: // it will be read anyhow
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			r.reload()
		}
	}
}

// reload reads the configuration again. One with problems changes nothing. What
// has changed is logged by key, without values.
func (r *reloader) reload() {
	log := r.on.log
	next, err := r.load()
	if err != nil {
		problems, ok := errors.AsType[config.Problems](err)
		if !ok {
			log.Error("the configuration was not reloaded, nothing has changed", "problem", err)
		}
		for _, p := range problems {
			log.Error("the configuration was not reloaded, nothing has changed", "problem", p.Error())
		}
		return
	}
	now, changed, waiting := r.now.Reload(&next)
	r.now = now
	r.apply()
	r.level.Set(min(r.level.Level(), now.Log.SlogLevel())) // for the next line
	log.Info("the configuration was reloaded", "changed", strings.Join(changed, ", "))
	r.level.Set(now.Log.SlogLevel())
	if len(waiting) > 0 {
		log.Warn("settings have changed that take a restart", "settings", strings.Join(waiting, ", "))
	}
	for _, w := range next.Warnings(os.Environ(), r.where) {
		log.Warn("configuration warning", "what", w)
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
