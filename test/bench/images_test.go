package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

const (
	imageMachines = 200
	imageBytes    = 4 << 20 // of the kernel, and as many of the RAM disk
	imageLink     = "200mbit"
)

// bootFromInstances starts instances on one database, each behind a link of imageLink, and lets machines boot all at once. It returns the
// megabytes that they loaded in a second.
func bootFromInstances(t *testing.T, e *Env, n int) (mbps float64, err error) {
	t.Setenv("SLIPWAY_NET", "1") // a benchmark that was named is not left out
	// A test of its own: its namespaces and servers end with it.
	t.Run(fmt.Sprint(n, " instances"), func(t *testing.T) {
		l := netlab.New(t, "make bench", "tc")
		all := netlab.NewAppliances(l, []string{"a", "b", "c"}[:n]...)
		database, err := databaseFlags(e.Postgres(), l.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range all {
			if i > 0 {
				l.Must("mkdir", "-p", a.Data)
				l.Must("cp", all[0].Data+"/secret.key", a.Data)
			}
			a.Process = l.Start(a.Net.Server, nil, nil, append([]string{
				e.Slipway, "serve", "--interface", "vs", "--data-dir", a.Data, "--unknown", "wait", "--instance", string(rune('a' + i)),
			}, database...)...)
			a.Process.WaitFor("answering dhcp", 1)
			if i == 0 {
				importImage(t, a)
			} else {
				a.Process.WaitFor("this one serves on its behalf", 1)
			}
		}
		for _, a := range all {
			waitForFiles(t, a)
			l.In(a.Net.Server, "tc", "qdisc", "add", "dev", "vs", "root", "tbf", "rate", imageLink, "burst", "64k", "latency", "50ms")
		}
		time.Sleep(4 * time.Second) // until each of them knows that the others live
		r := all[0].Boot(t.Context(), simulate.Config{
			Hosts: imageMachines, Expect: simulate.StageBooted, Timeout: 5 * time.Minute,
			Firmware: []simulate.Firmware{simulate.FirmwareUEFI},
		})
		all[0].Good(r)
		mbps = float64(r.Bytes) / 1e6 / r.Took.Seconds()
		e.say("%d instances: %d machines loaded %.0f MB in %s", n, r.Arrived, float64(r.Bytes)/1e6, r.Took.Round(10*time.Millisecond))
	})
	if mbps == 0 {
		return 0, errors.New("the machines did not boot")
	}
	return mbps, nil
}

// importImage imports an image that all machines boot.
func importImage(t *testing.T, a *netlab.Appliance) {
	t.Helper()
	ctx := t.Context()
	r := client.ImportRequest{Name: "live", KernelArgs: []string{"slipway.report=${report}"}}
	for role, name := range map[inventory.Role]string{inventory.RoleKernel: "linux", inventory.RoleInitrd: "initrd.gz"} {
		path := filepath.Join(a.Lab.Dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(name[:5]+"...", imageBytes/8)), 0o644); err != nil {
			t.Fatal(err)
		}
		r.Files = append(r.Files, client.ImportFile{Role: role, Name: name, Source: path})
	}
	job, err := a.API.Import(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for j, err := range a.API.WatchJob(ctx, job.ID) {
		if err != nil {
			t.Fatal(err)
		}
		job = j
	}
	if job.Error != "" {
		t.Fatal(job.Error)
	}
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
}

// waitForFiles waits until an instance has both files of the image.
func waitForFiles(t *testing.T, a *netlab.Appliance) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(a.Data, "artefacts", "sha256", "*", "*"))
		if err == nil && len(files) == 2 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("it has the files %v; it says:\n%s", files, a.Process.Text())
		}
	}
}
