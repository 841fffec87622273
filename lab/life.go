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
)

// LifeProfileName and LifeImageName are what the installed machines become, by the names they have in the server.
const (
	LifeProfileName = "lab-disk"
	LifeImageName   = "lab-os"
)

// The label that tells the hosts which are installed from those whose system stays in memory.
const (
	useLabel     = "lab-use"
	useInstalled = "installed"
)

// agentMiB is the memory of a machine that runs our agent: firmware holds its RAM disk packed and the kernel unpacked, and
// the agent writes with what is left.
const agentMiB = 1024

// prepareLife gives the server what installing takes: our agent, made of this machine's kernel, the system to be written,
// and a profile for it.
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

// take accepts a discovered host that is to be installed: it gets its name, its controller, and is then ours.
func (r remote) take(ctx context.Context, h inventory.Host, s Spec) error {
	name, rack, use := s.HostName(), "lab", useInstalled
	_, err := r.c.Hosts.Patch(ctx, string(h.ID), client.HostPatch{
		Name: &name, Place: &client.PlacePatch{Rack: &rack, Unit: &s.Unit}, Labels: map[string]*string{useLabel: &use},
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

// create wants a machine on the host of that spec.
func (r remote) create(ctx context.Context, s Spec) error {
	_, err := r.c.Machines.Create(ctx, inventory.Machine{
		Name: s.MachineName(), Profile: LifeProfileName, Placement: inventory.Placement{Host: s.HostName()}, Clean: inventory.CleanFull,
	})
	return err
}

// remove asks for the machine's end.
func (r remote) remove(ctx context.Context, s Spec) error {
	_, _, err := r.c.Machines.Remove(ctx, s.MachineName(), false)
	return err
}

// under returns the machines and the operations under way.
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
