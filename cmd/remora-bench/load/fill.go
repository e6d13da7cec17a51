package load

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

// How memories are filled in: through the live path, as real turns are, at a
// pace that the persistence keeps up with.
const (
	fillRate  = 800 // turns a second
	fillConns = 8
	fillSeed  = 21

	fillRest = 2 * time.Second
)

// memoriesPerTurn: a turn leaves the passage of the user and the passage of the
// assistant.
const memoriesPerTurn = 2

// poolSize bounds the different newest messages of a run; a reference makes
// each request's unique.
const poolSize = 1024

// benchQuestions asks for what the memories of the filled user say.
func benchQuestions(memories int) []string {
	t := prose.New(fillSeed)
	turns := max(memories/memoriesPerTurn, 1)
	questions := make([]string, 0, min(turns, poolSize))
	for i := range turns {
		if s := t.Statement(); i%max(turns/poolSize, 1) == 0 && len(questions) < poolSize {
			questions = append(questions, t.Question(s, questionLen))
		}
	}
	return questions
}

// benchTalk states and asks in turn, each question about what the same user
// said eight statements before, which is searchable by then. So users who start
// without memories get some on every other turn.
func benchTalk() []string {
	const lag = 8
	t := prose.New(fillSeed + 1)
	told := make([]string, 0, poolSize/2)
	talk := make([]string, 0, poolSize)
	for i := range poolSize / 2 {
		s := t.Sentence()
		for len(s) > questionLen {
			s = t.Sentence()
		}
		told = append(told, s)
		talk = append(talk, s, t.Question(told[max(i-lag, 0)], questionLen))
	}
	return talk
}

// messages returns what the users of a target say: statements and questions if
// their turns are stored, otherwise questions only.
func (b *bed) messages(t target) []string {
	if t.memory == remoraTargets[targetOn] {
		return b.talk
	}
	return b.questions
}

// fill makes the data of a user with the bed's number of memories, once;
// targets start from copies of it. With no memories wanted there is none.
func (b *bed) fill(ctx context.Context) error {
	if b.filled != "" || b.memories == 0 {
		return nil
	}
	dir := filepath.Join(b.dir, "filled")
	p, addr, err := b.serveRemora(ctx, remoraSetup{
		name: "fill", dir: dir, logLevel: logInfo, upstream: "http://" + b.upstream, auditAtOnce: true,
	})
	if err != nil {
		return err
	}
	turns := b.memories / memoriesPerTurn
	fmt.Fprintf(b.stderr, "filling a user with %d memories ...\n", b.memories)
	if err := fillTurns(ctx, addr, turns); err != nil {
		return err
	}
	p.rest(ctx, fillRest, 2*time.Minute) // audits wait for their conversations to be idle, and rest in between
	counters, err := target{name: "fill", memory: "write", proc: p}.stop()
	if err != nil {
		return err
	}
	if counters.known && (counters.dropped > 0 || counters.persisted != int64(turns)) {
		return fmt.Errorf("%d turns sent, %d persisted, %d dropped", turns, counters.persisted, counters.dropped)
	}
	b.filled = dir
	return nil
}

// fillTurns sends turns of user 0 in write mode.
func fillTurns(ctx context.Context, addr string, turns int) error {
	t := prose.New(fillSeed)
	statements := make([]string, turns)
	for i := range statements {
		statements[i] = t.Statement()
	}
	start := time.Now()
	deadline := start.Add(time.Duration(turns)*time.Second/fillRate + time.Minute)
	failures := make([]error, fillConns)
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range fillConns {
		wg.Go(func() {
			c, err := dialClient(ctx, route{addr: addr}, deadline, nil)
			if err != nil {
				failures[w] = err
				return
			}
			defer c.close()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= turns {
					return
				}
				time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / fillRate)))
				if _, err := c.ask(addr, "user-0000", "write", statements[i]); err != nil {
					failures[w] = fmt.Errorf("send turn: %w", err)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(failures...), ctx.Err())
}
