package lab

import (
	"context"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// The names, in the server, of what the machines of a lab boot, and of what those become that are installed.
const (
	ProfileName     = "lab"
	ImageName       = "lab-debian-12"
	LifeProfileName = "lab-disk"
	LifeImageName   = "lab-os"
)

// The label that tells the hosts which are installed from those whose system stays in memory.
const (
	useLabel     = "lab-use"
	useInstalled = "installed"
)

// api is what a follower needs of the server; tests replace it.
type api interface {
	hosts(ctx context.Context) ([]inventory.Host, error)
	// accept accepts a discovered host, and gives it the name and the place of its Spec.
	accept(ctx context.Context, h inventory.Host, s Spec) error
	// profileOf returns the profile of the host's latest boot, "" for none.
	profileOf(ctx context.Context, host string) string
	// under returns all machines, and the operations that are not finished.
	under(ctx context.Context) ([]inventory.Machine, []inventory.Operation, error)
	// create makes the machine for that host, and remove deletes it. Conflict says that the call was made before.
	create(ctx context.Context, s Spec) error
	remove(ctx context.Context, s Spec) error
	// follow calls each for every event since the start of the server, until ctx ends or the stream breaks.
	follow(ctx context.Context, each func(inventory.Event)) error
}

// remote implements api with a real server.
type remote struct {
	c          *client.Client
	controller string // address of the libvirt driver
}

func (r remote) hosts(ctx context.Context) (hosts []inventory.Host, err error) {
	for h, err := range r.c.Hosts.All(ctx, client.Query{}) {
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func (r remote) accept(ctx context.Context, h inventory.Host, s Spec) error {
	if s.IsInstalled {
		return r.take(ctx, h, s)
	}
	if _, err := r.c.Hosts.Accept(ctx, string(h.ID)); err != nil {
		return err
	}
	name, rack := s.HostName(), "lab"
	_, err := r.c.Hosts.Patch(ctx, string(h.ID), wire.HostPatch{Name: &name, Place: &wire.PlacePatch{Rack: &rack, Unit: &s.Unit}})
	return err
}

func (r remote) profileOf(ctx context.Context, host string) string {
	p, err := r.c.Sessions.List(ctx, client.Query{Host: host, Limit: 1})
	if err != nil || len(p.Items) == 0 {
		return ""
	}
	return p.Items[0].Profile
}

func (r remote) follow(ctx context.Context, each func(inventory.Event)) error {
	// A stream without a beginning would start with the next event. The first of all is the server's own start.
	for ev, err := range r.c.Follow(ctx, client.EventQuery{After: 1}) {
		if err != nil {
			return err
		}
		each(ev)
	}
	return ctx.Err()
}

// importImage imports an image, and waits for the end of the job.
func importImage(ctx context.Context, c *client.Client, r client.ImportRequest) error {
	job, err := c.Import(ctx, r)
	if err != nil {
		return fmt.Errorf("import image %s: %w", r.Name, err)
	}
	for job, err = range c.WatchJob(ctx, job.ID) {
		if err != nil {
			return fmt.Errorf("import image %s: %w", r.Name, err)
		}
	}
	if job.Error != "" {
		return inventory.Errorf(inventory.Unavailable, "image %s is not imported: %s", r.Name, job.Error).WithHint("%s", job.Hint)
	}
	return ctx.Err()
}

// take accepts a host that is to be installed. It sets name and controller first: the server inspects a host as soon
// as it is accepted.
func (r remote) take(ctx context.Context, h inventory.Host, s Spec) error {
	name, rack, use := s.HostName(), "lab", useInstalled
	_, err := r.c.Hosts.Patch(ctx, string(h.ID), wire.HostPatch{
		Name: &name, Place: &wire.PlacePatch{Rack: &rack, Unit: &s.Unit}, Labels: map[string]*string{useLabel: &use},
	})
	if err != nil {
		return err
	}
	if _, err := r.c.Hosts.SetBMC(ctx, string(h.ID), client.SetBMC{Driver: inventory.Libvirt, Address: r.controller, System: s.Domain()}); err != nil {
		return err
	}
	_, err = r.c.Hosts.Accept(ctx, string(h.ID))
	return err
}

// create makes a machine on the host of that Spec.
func (r remote) create(ctx context.Context, s Spec) error {
	_, err := r.c.Machines.Create(ctx, inventory.Machine{
		Name: s.MachineName(), Profile: LifeProfileName, Placement: inventory.Placement{Host: s.HostName()}, Clean: inventory.CleanFull,
	})
	return err
}

// remove deletes the machine.
func (r remote) remove(ctx context.Context, s Spec) error {
	_, _, err := r.c.Machines.Remove(ctx, s.MachineName(), false)
	return err
}

// under returns all machines, and the operations that are not finished.
func (r remote) under(ctx context.Context) (machines []inventory.Machine, ops []inventory.Operation, err error) {
	for m, err := range r.c.Machines.All(ctx, client.Query{}) {
		if err != nil {
			return nil, nil, err
		}
		machines = append(machines, m)
	}
	p, err := r.c.Operations.List(ctx, client.Query{Open: true})
	return machines, p.Items, err
}
