package provision

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

func TestATaskWhoseWordsChangeForEverEnds(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	_, err := l.engine.CleanHost(context.Background(), s.host().ID, inventory.CleanQuick, ledger.By("a test"))
	l.must(err)
	op := func() inventory.Operation {
		op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
		l.must(err)
		return op
	}
	s.isStuck = true
	l.until("it is on", func() bool { return op().Step == inventory.StepNetboot })
	_, id := s.boot()
	s.session = id
	l.must(l.engine.AgentReport(context.Background(), id, s.address(), l.engine.AgentKey(id), wire.Report{Version: wire.Version, State: wire.Hello, Agent: &wire.AgentInfo{UUID: s.machine.uuid}}))
	task, err := l.engine.TaskNow(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Version, base)
	l.must(err)
	if task.Kind != wire.Wipe {
		t.Fatalf("it is told %+v", task)
	}
	began := op()
	for i := range 200 {
		l.clock = l.clock.Add(5 * time.Minute)
		if now := op(); now.AttemptN != began.AttemptN || l.clock.After(now.DeadlineAt) {
			break
		}
		l.must(l.engine.AgentReport(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Report{
			Version: wire.Version, Task: task.ID, State: wire.Running, Detail: fmt.Sprintf("still at it %d", i),
			Progress: &wire.Progress{Bytes: int64(i) << 40, Total: 1 << 60},
		}))
	}
	if took := l.clock.Sub(began.StepAt); took < operation.AtMost || took > 8*time.Hour {
		t.Errorf("it may go on for %s", took)
	}
	l.turn()
	if now := op(); now.AttemptN == began.AttemptN {
		t.Errorf("its attempt goes on: %+v", now)
	}
}

func TestAnImageOfARegistryCountsAsWrittenByItsManifestOnly(t *testing.T) {
	layer := "sha256:" + strings.Repeat("ee", 32)
	manifest := fmt.Appendf(nil, `{"layers":[{"digest":%q}]}`, layer)
	pinned := fmt.Sprintf("sha256:%x", sha256.Sum256(manifest))
	for name, c := range map[string]struct {
		digest string
		chain  [][]byte
		isGood bool
	}{
		"its manifest":          {layer, [][]byte{manifest}, true},
		"any digest, unproven":  {"sha256:" + strings.Repeat("77", 32), nil, false},
		"a manifest of its own": {layer, [][]byte{fmt.Appendf(nil, `{"layers":[{"digest":%q}],"x":1}`, layer)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			s := l.add("a", true)
			l.write(func(tx inventory.Tx) error {
				i, err := tx.Images().Find("debian-disk")
				i.Remote, i.Files, i.DiskBytes = "oci://r.example/debian@"+pinned, nil, 1<<30
				return errors.Join(err, tx.Images().Update(&i, l.clock))
			})
			said := wire.Report{Version: wire.Version, State: wire.Done, Write: &wire.WriteResult{
				Disk: s.hardware().Disks[0], Digest: c.digest, Chain: c.chain, IsWritten: true, IsSeeded: true,
			}}
			s.faults = []wire.Report{said, said, said}
			l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Host: "a"}})
			attempted := false
			l.until("the report is judged", func() bool {
				op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
				l.must(err)
				attempted = attempted || len(s.faults) < 3
				return attempted && (op.AttemptN > 1 || op.Step == inventory.StepReboot || op.Step == inventory.StepFirstBoot)
			})
			op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
			l.must(err)
			if isGood := op.AttemptN == 1; isGood != c.isGood {
				t.Errorf("attempt %d at %s: %s", op.AttemptN, op.Step, op.Reason)
			}
		})
	}
}
