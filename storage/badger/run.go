package badger

import (
	"context"
	"errors"
	"os"
	"time"
)

const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 15 * time.Second
	watchEvery = 5 * time.Second
)

// Run keeps the store open until ctx ends, then waits for operations under way and closes it. While it cannot be opened
// Run logs why, once per change of reason, and tries again after 0.2 s, doubling to 15 s. The error is that of closing.
func (s *Store) Run(ctx context.Context) error {
	wait, told := firstRetry, ""
	for {
		err := s.Open(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		s.mu.Lock()
		reason, hopeless := s.reason, s.hopeless
		s.mu.Unlock()
		if reason != told {
			told = reason
			s.log.Error("memory is unavailable: the store does not open", "reason", reason, "retry", !hopeless)
		}
		if hopeless {
			<-ctx.Done()
			return nil
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, lastRetry)
		case <-ctx.Done():
			return nil
		}
	}
	s.log.Info("store is open")
	s.watch(ctx)
	return s.Close()
}

// watch measures the free space and tells when it crosses the limit.
func (s *Store) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	low := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		free, err := s.space.now()
		switch {
		case err != nil:
			s.log.Warn("free space is not known", "err", err)
		case free < s.cfg.MinFreeBytes && !low:
			low = true
			s.log.Error("store takes no writes", "reason", s.space.reason(free))
		case free >= s.cfg.MinFreeBytes && low:
			low = false
			s.log.Info("store takes writes again", "free_bytes", free)
		}
	}
}

// Open opens the store now, or says why it does not open with an error that wraps storage.ErrUnavailable. For tests and
// commands; a server uses Run. Opening an open store is an error.
func (s *Store) Open(ctx context.Context) error {
	s.mu.Lock()
	switch {
	case s.session != nil || s.opening:
		s.mu.Unlock()
		return unavailable("already open, or being opened")
	case s.hopeless:
		s.mu.Unlock()
		return unavailable(s.reason)
	}
	s.opening = true
	s.mu.Unlock()

	se, err := s.openSession(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = false
	if err != nil {
		s.reason = err.Error()
		s.attempts++
		if known, ok := errors.AsType[*openError](err); ok {
			s.hopeless, s.damage = known.hopeless, known.damage
		}
		if s.damages++; !s.damage {
			s.damages = 0
		}
		return unavailable(s.reason)
	}
	s.session, s.reason, s.attempts, s.damages, s.damage = se, "", 0, 0, false
	return nil
}

// Close waits for operations under way and closes the store. It may be opened again. Closing a closed store does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	se := s.session
	if se == nil {
		s.mu.Unlock()
		return nil
	}
	s.session, s.reason, s.opening = nil, "closed", true // nobody opens it before it is closed
	s.mu.Unlock()

	se.ops.Wait()
	err := se.db.Close()
	if err == nil {
		err = os.Remove(s.inventoryPath())
	}

	s.mu.Lock()
	s.opening = false
	s.mu.Unlock()
	return err
}
