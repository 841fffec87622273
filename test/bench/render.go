package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/inventory"
)

// How many hosts are rendered, and between which sizes of a fleet previews are compared.
const (
	renderedN  = 1000
	smallFleet = 100
	largeFleet = 10_000
)

// renderButane measures what it takes to render and validate a profile for every host of a fleet: the whole way, from
// a database on disk to documents that were checked. The peer is Butane's own command, run once for each host on a
// document that says the same, as many at a time as there are processors.
func renderButane(ctx context.Context, e *Env) (Figure, error) {
	f := Figure{Name: "render-butane", IsCost: true, Unit: "s", PeerName: "butane"}
	dir, err := e.freshDir("render")
	if err != nil {
		return f, err
	}
	fl, err := newFleet(ctx, dir, renderedN)
	if err != nil {
		return f, err
	}
	defer fl.store.Close()
	files, err := fl.butaneFiles(ctx, dir)
	if err != nil {
		return f, err
	}
	var ours, peer []float64
	for range e.repeats() { // in turns, so that a busy minute of the machine hits both
		took, err := butaneAll(ctx, files)
		if err != nil {
			return f, err
		}
		peer = append(peer, took.Seconds())
		if e.Slipway == "" {
			continue
		}
		if took, err = fl.renderAll(ctx, ignitionImage, fleetConfig); err != nil {
			return f, err
		}
		ours = append(ours, took.Seconds())
		e.say("ignition: %.2f ms per host; butane: %.2f ms per host", ours[len(ours)-1], peer[len(peer)-1]) // 1,000 hosts
	}
	f.Ours, f.Peer = median(ours), median(peer)
	if e.Slipway == "" {
		return f, nil
	}
	return f, e.sayMore(ctx, fl)
}

func (e *Env) repeats() int {
	if e.Quick {
		return 1
	}
	return 3
}

// sayMore measures what has no peer: the other format, and an edit of what is in use, which renders every host twice
// and compares.
func (e *Env) sayMore(ctx context.Context, fl *fleet) error {
	took, err := fl.renderAll(ctx, cloudImage, fleetConfig)
	if err != nil {
		return err
	}
	e.say("cloud-init: %.2f ms per host", took.Seconds())
	for _, image := range []string{ignitionImage, cloudImage} {
		p, err := fl.draft(ctx, image, fleetConfig)
		if err != nil {
			return err
		}
		if err := fl.save(ctx, p); err != nil {
			return err
		}
		took, err := fl.renderAll(ctx, image, fleetConfig+"time: {ntpServers: [ntp.other.example]}\n")
		if err != nil {
			return err
		}
		e.say("edit of a profile in use, image %s: %.2f ms per host, rendered before and after and compared", image, took.Seconds())
	}
	return nil
}

// renderAll renders a draft of the profile for all hosts, with an engine that has seen none of them.
func (f *fleet) renderAll(ctx context.Context, image, config string) (time.Duration, error) {
	p, err := f.draft(ctx, image, config)
	if err != nil {
		return 0, err
	}
	e := f.engine()
	runtime.GC()
	start := time.Now()
	i, err := e.CheckProfile(ctx, &p)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if i.HostN != len(f.hosts) || i.ChangedN != len(f.hosts) || i.FailedN != 0 {
		return 0, fmt.Errorf("%d of %d hosts were rendered, %d changed and %d failed: %v", i.HostN, len(f.hosts), i.ChangedN, i.FailedN, i.Findings)
	}
	return took, nil
}

// butaneFiles writes a Butane document for each host, and checks that Butane makes of the first what we do.
func (f *fleet) butaneFiles(ctx context.Context, dir string) (files []string, err error) {
	p, err := f.draft(ctx, ignitionImage, fleetConfig)
	if err != nil {
		return nil, err
	}
	e := f.engine()
	for n := range f.hosts {
		v, err := e.Preview(ctx, f.hosts[n].ID, &p)
		if err != nil {
			return nil, err
		}
		if len(v.Documents) != 1 {
			return nil, fmt.Errorf("host %s is given %d documents: %v", v.Host, len(v.Documents), v.Findings)
		}
		ours := []byte(v.Documents[0].Text)
		doc, err := asButane(ours)
		if err != nil {
			return nil, fmt.Errorf("write %s as Butane: %w", v.Host, err)
		}
		file := filepath.Join(dir, v.Host+".bu")
		if err := os.WriteFile(file, doc, 0o644); err != nil {
			return nil, fmt.Errorf("write a Butane document: %w", err)
		}
		files = append(files, file)
		if n > 0 {
			continue
		}
		if err := sameAsButane(ctx, file, ours); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// butaneAll runs Butane on every file, as many at a time as there are processors.
func butaneAll(ctx context.Context, files []string) (time.Duration, error) {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			for n := int(next.Add(1)) - 1; n < len(files); n = int(next.Add(1)) - 1 {
				if err := run(ctx, butaneProgram, "--strict", files[n]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return time.Since(start), err
}

// renderFlat measures one preview in a large fleet against one in a small one: it must not cost more.
func renderFlat(ctx context.Context, e *Env) (Figure, error) {
	f := Figure{Name: "render-flat", IsCost: true, Unit: "ms", PeerName: fmt.Sprintf("%d-hosts", smallFleet)}
	if e.Slipway == "" {
		return f, nil // there is no other peer than ourselves
	}
	var fleets []*fleet
	for _, n := range []int{smallFleet, largeFleet} {
		dir, err := e.freshDir(fmt.Sprintf("flat-%d", n))
		if err != nil {
			return f, err
		}
		fl, err := newFleet(ctx, dir, n)
		if err != nil {
			return f, err
		}
		defer fl.store.Close()
		p, err := fl.draft(ctx, ignitionImage, fleetConfig)
		if err != nil {
			return f, err
		}
		if err := fl.save(ctx, p); err != nil {
			return f, err
		}
		fleets = append(fleets, fl)
	}
	var means [2][]float64
	for range 4*e.repeats() + 1 {
		for n, fl := range fleets {
			took, err := fl.previews(ctx)
			if err != nil {
				return f, err
			}
			slices.Sort(took)
			mean := 0.0
			for _, t := range took {
				mean += t / float64(len(took))
			}
			means[n] = append(means[n], mean)
			e.say("%d hosts: %.2f ms per preview, p99 %.2f ms", len(fl.hosts), mean, percentile(took, .99))
		}
	}
	f.Peer, f.Ours = median(means[0]), median(means[1])
	return f, nil
}

// previews asks a new engine for the previews of as many hosts as the small fleet has, each once, in milliseconds.
func (f *fleet) previews(ctx context.Context) ([]float64, error) {
	e := f.engine()
	runtime.GC()
	var took []float64
	for n := 0; n < len(f.hosts); n += len(f.hosts) / smallFleet {
		start := time.Now()
		v, err := e.Preview(ctx, f.hosts[n].ID, nil)
		took = append(took, float64(time.Since(start))/float64(time.Millisecond))
		if err != nil {
			return nil, err
		}
		if v.Digest == "" {
			return nil, inventory.Errorf(inventory.Internal, "no preview of %s: %v", v.Host, v.Findings)
		}
	}
	return took, nil
}
