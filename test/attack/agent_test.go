package attack_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

// TestAForgedReportOfAnAgentIsNotBelieved takes the address of a machine that our agent was told to inspect, and reports
// what the agent would, without the key of that boot and with a wrong one.
func TestAForgedReportOfAnAgentIsNotBelieved(t *testing.T) {
	a := victim(t)
	a.ImportLive()
	importAgent(a)
	if _, err := a.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	task := agentTask(a, 6)
	if task == "" {
		t.Fatal("no agent was told to inspect: this test attacks nothing")
	}
	var s inventory.BootSession
	for _, one := range sessions(a) {
		if one.Boot == "agent" {
			s = one
		}
	}
	if s.ID == "" {
		t.Fatalf("no boot of an agent in %+v", sessions(a))
	}
	before := a.Hosts()[0]
	hw := simulate.HardwareOf(9, 9) // of another machine
	a.Lab.In(a.Net.Client, "ip", "address", "add", s.Address.String()+"/16", "dev", a.Net.ClientIf)
	for _, r := range []wire.Report{
		{Version: wire.Version, State: wire.Hello, Agent: &wire.AgentInfo{Build: "forged"}},
		{Version: wire.Version, Task: task, State: wire.Done, Hardware: &hw},
		{Version: wire.Version, Task: task, State: wire.Failed, Error: "forged"},
	} {
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"", "/" + strings.Repeat("ab", 16)} {
			url := "http://10.77.0.1/boot/" + string(s.ID) + key + "/agent/report"
			code, text := ask(a, a.Net.Client, s.Address.String(), url, "", string(body))
			if code != 403 || !strings.Contains(text, "key of this boot") {
				t.Errorf("a forged report %s with the key %q: %d %s", r.State, key, code, text)
			}
		}
	}
	event(a, "agent.refused", s.Address.String())
	if h := a.Hosts()[0]; h.State != before.State {
		t.Errorf("the host is %s after forged reports, and was %s", h.State, before.State)
	}

	// The machine boots once more, and its own agent is told to do its work.
	a.Lab.In(a.Net.Client, "ip", "address", "del", s.Address.String()+"/16", "dev", a.Net.ClientIf)
	if agentTask(a, 6) == "" {
		t.Error("the machine's own agent got no work after the attack")
	}
	boots(a, 9)
}

// importAgent imports the files of ImportLive as our agent.
func importAgent(a *netlab.Appliance) {
	t := a.Lab.T
	t.Helper()
	r := client.ImportRequest{
		Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1", Arch: inventory.X8664,
		KernelArgs: []string{wire.ArgServer + "=${base}/boot/${session}"},
		Files: []client.ImportFile{
			{Role: inventory.RoleKernel, Name: "linux", Source: filepath.Join(a.Lab.Dir, "linux")},
			{Role: inventory.RoleInitrd, Name: "initrd.gz", Source: filepath.Join(a.Lab.Dir, "initrd.gz")},
		},
	}
	job, err := a.API.Import(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for j, err := range a.API.WatchJob(t.Context(), job.ID) {
		if err != nil {
			t.Fatal(err)
		}
		job = j
	}
	if job.State != "done" {
		t.Fatalf("import of the agent: %+v", job)
	}
}

// agentTask lets a machine boot our agent, and cuts its power as soon as the agent has begun a task, whose id it returns.
func agentTask(a *netlab.Appliance, seed uint64) (task string) {
	a.Lab.T.Helper()
	ctx, cancel := context.WithTimeout(a.Lab.T.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	a.Boot(ctx, simulate.Config{Hosts: 1, Seed: seed, Pace: 1, Expect: simulate.StageBooted, Acted: func(x simulate.Act) {
		mu.Lock()
		defer mu.Unlock()
		task = x.Task
		cancel()
	}})
	return task
}
