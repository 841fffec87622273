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

// prepareLife gives the server what an installation needs: the agent with the kernel of this machine, the operating
// system, and a profile.
func prepareLife(ctx context.Context, c *client.Client, dir, executable string, out io.Writer) error {
	say(out, "Making the agent's image and the system to install from this machine's kernel ...")
	kernel, modules, err := ramdisk.Installed("/")
	if err != nil {
		return err
	}
	k, err := ramdisk.FromFiles(kernel, modules)
	if err != nil {
		return err
	}
	agent, err := agentimage.Build(ctx, agentimage.Options{
		Agent: filepath.Join(filepath.Dir(executable), "slipway-agent"), Out: filepath.Join(dir, "agent"), Arch: inventory.X8664,
	}, io.Discard)
	if err != nil {
		return err
	}
	disk, err := writeOSDisk(ctx, dir, k)
	if err != nil {
		return err
	}
	say(out, "Agent: kernel %s, %d MB with its RAM disk. System: %d MiB on disk.", agent.KernelVersion, (agent.KernelBytes+agent.InitrdBytes)/1e6, osDiskMiB)
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
		if err := importImage(ctx, c, r); err != nil {
			return err
		}
	}
	profile := inventory.Profile{Name: LifeProfileName, Image: LifeImageName, Config: "host: {timezone: Etc/UTC}\n"}
	if _, err := c.Profiles.Put(ctx, LifeProfileName, profile); err != nil {
		return fmt.Errorf("save the profile of installed machines: %w", err)
	}
	return nil
}
