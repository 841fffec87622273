package lab

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"slipway.dev/slipway/images/agentimage"
	"slipway.dev/slipway/images/ramdisk"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// LifeProfileName and LifeImageName are what the installed machines become, by the names they have in the server.
const (
	// LifeProfileName and LifeImageName are the names, in the server, of what installed machines become.
	LifeProfileName = "lab-disk"
	LifeImageName   = "lab-os"
)

// The label that tells the hosts which are installed from those whose system stays in memory.
const (
	// The label that marks the hosts for an installation; the others boot a system in memory.
	useLabel     = "lab-use"
	useInstalled = "installed"
)

// agentMiB is the memory, in MiB, of a machine that runs the agent. The firmware holds the packed RAM disk while the
// kernel unpacks it, and the agent needs the rest for writing.
const agentMiB = 1024

// prepareLife gives the server what an installation needs: the agent with the kernel of this machine, the operating
// system, and a profile.
func (l *Lab) prepareLife(ctx context.Context, cfg Config) error {
	say(cfg.Out, "Making the agent's image and the system to install from this machine's kernel ...")
	kernel, modules, err := ramdisk.Installed("/")
	if err != nil {
		return err
	}
	k, err := ramdisk.FromFiles(kernel, modules)
	if err != nil {
		return err
	}
	agent, err := agentimage.Build(ctx, agentimage.Options{
		Agent: filepath.Join(filepath.Dir(cfg.Executable), "slipway-agent"), Out: filepath.Join(l.Rack.Dir(), "agent"), Arch: inventory.X8664,
	}, io.Discard)
	if err != nil {
		return err
	}
	disk, err := writeOSDisk(ctx, l.Rack.Dir(), k)
	if err != nil {
		return err
	}
	say(cfg.Out, "Agent: kernel %s, %d MB with its RAM disk. System: %d MiB on disk.", agent.KernelVersion, (agent.KernelBytes+agent.InitrdBytes)/1e6, osDiskMiB)
	for _, r := range []client.ImportRequest{
		{Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1", Arch: inventory.X8664, Files: []client.ImportFile{
			{Role: inventory.RoleKernel, Name: "kernel", Source: agent.KernelPath},
			{Role: inventory.RoleInitrd, Name: "initrd", Source: agent.InitrdPath},
		}},
		{
			Name: LifeImageName, Release: "1", Arch: inventory.X8664, Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "22.4.2"}},
			Files: []client.ImportFile{{Role: inventory.RoleDisk, Name: "lab-os.raw", Source: disk}},
		},
	} {
		if err := importImage(ctx, l.API, r); err != nil {
			return err
		}
	}
	profile := inventory.Profile{Name: LifeProfileName, Image: LifeImageName, Config: "host: {timezone: Etc/UTC}\n"}
	if _, err := l.API.Profiles.Put(ctx, LifeProfileName, profile); err != nil {
		return fmt.Errorf("save the profile of installed machines: %w", err)
	}
	return nil
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
	p, err := r.c.Operations.Find(ctx, client.OperationQuery{IsOpen: true})
	return machines, p.Items, err
}
