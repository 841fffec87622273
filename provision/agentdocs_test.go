package provision

import (
	"context"
	"strings"
	"testing"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// A program at the machine's own address, which knows the boot's id, is not our agent.
func TestTheDocumentsThatOurAgentPlacesNeedTheirKey(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	var write *wire.WriteTask
	l.until("its agent is told to write", func() bool {
		if s.session == "" {
			return false
		}
		task, err := l.engine.TaskNow(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Version, base)
		l.must(err)
		write = task.Write
		return write != nil
	})
	before, name, ok := strings.Cut(write.Seed.Documents["user-data"], "/config/")
	if !ok || name != "user-data" {
		t.Fatalf("documents %v", write.Seed.Documents)
	}
	key := before[strings.LastIndexByte(before, '/')+1:]
	ask := func(key, name string) error {
		_, err := l.engine.Document(context.Background(), pxe.ConfigRequest{Session: s.session, Source: s.address(), Base: base, Name: name, Key: key})
		return err
	}
	for name, key := range map[string]string{"no key": "", "the agent's key": l.engine.AgentKey(s.session), "another key": strings.Repeat("ab", 16)} {
		for _, document := range []string{"user-data", "meta-data", "", pxe.ConfigArchive} {
			if err := ask(key, document); !inventory.IsKind(err, inventory.Forbidden) {
				t.Errorf("%s, document %q: %v", name, document, err)
			}
		}
	}
	l.settle()
	if !l.hasIssue(inventory.IssueSessionRefused)() {
		t.Errorf("issues %+v", l.openIssues())
	}
	l.must(ask(key, "user-data"))
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
}
