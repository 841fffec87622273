// Package hosts owns the commands for physical servers: slipway host, bmc, rack and view. It decides nothing: it calls the REST API.
package hosts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// HostCommand is slipway host. A host is named by its name, its id or one of its MACs.
type HostCommand struct {
	List            hostList            `cmd:"" help:"List hosts, those that nobody has accepted among them."`
	Show            hostShow            `cmd:"" help:"Show a host."`
	Create          hostCreate          `cmd:"" help:"Add a host that has sent no packet yet."`
	Delete          hostDelete          `cmd:"" help:"Delete hosts, with all that Slipway stores about them."`
	ForgetStrangers hostForgetStrangers `cmd:"" help:"Delete the hosts that nobody has accepted or changed."`

	Bulk     hostBulk     `cmd:"" help:"Do something to many hosts: by name or by selector, first with --dry-run."`
	Accept   hostAccept   `cmd:"" help:"Accept discovered hosts: by name, all, or by selector."`
	Label    hostLabel    `cmd:"" help:"Set or remove labels: KEY=VALUE sets, KEY- removes."`
	Place    hostPlace    `cmd:"" help:"Set the place of a host: site, row, rack, unit."`
	Set      hostSet      `cmd:"" help:"Change what is known of a host, or pin its profile."`
	Pin      hostPin      `cmd:"" help:"Pin a revision of a host's profile, or with 0 follow the newest."`
	Install  hostInstall  `cmd:"" help:"Install hosts. This overwrites disks at the next boot, or at once with a disk image."`
	Release  hostRelease  `cmd:"" help:"Cancel the operation of hosts, or end their quarantine. This wipes nothing."`
	Maintain hostMaintain `cmd:"" help:"Put hosts into maintenance, or with --off take them out."`
	Cordon   hostCordon   `cmd:"" help:"Keep machines from claiming hosts, or with --off end that. All else goes on."`
	Retain   hostRetain   `cmd:"" help:"Leave the disks of hosts as they are after the deletion of their machines, or with --off end that."`
	Protect  hostProtect  `cmd:"" help:"Keep everything destructive away from hosts, or with --off end that."`
	Confirm  hostConfirm  `cmd:"" help:"Confirm that the present or the next boot of these hosts is theirs. That boot gets their secrets."`
	Explain  hostExplain  `cmd:"" help:"Say what a host would boot now, and why; and when it does not boot, the likeliest causes."`
	PCAP     hostPCAP     `cmd:"" name:"pcap" help:"Write the latest packets of a host's boots as a capture file, for tcpdump and Wireshark."`
	Script   hostScript   `cmd:"" help:"Show the boot script that a host would get now."`
	Timeline hostTimeline `cmd:"" help:"Show a host's boots and operations with how long each step took, and what is expected next."`
	Sticker  hostSticker  `cmd:"" help:"Write a sticker for a host as SVG, with a QR code of its page."`
	Events   hostEvents   `cmd:"" help:"Show a host's boots step by step, with durations."`

	Inspect  hostInspect  `cmd:"" help:"Inspect a host's hardware with our agent, and burn it in."`
	Hardware hostHardware `cmd:"" help:"Show the hardware of a host."`
	Report   hostReport   `cmd:"" help:"Show a host's acceptance sheet: hardware, burn-in, firmware, wipes."`
	Clean    hostClean    `cmd:"" help:"Switch off a host that no machine has claimed, and wipe its disks."`
	Adopt    hostAdopt    `cmd:"" help:"Mark hosts that run a system of yours: Slipway starts nothing there. --off ends it."`

	Power     hostPower     `cmd:"" help:"Show or change the power of a host."`
	Locate    hostLocate    `cmd:"" help:"Light the identify LED of hosts, or with --off switch it off."`
	Console   hostConsole   `cmd:"" help:"Use a host's serial console; ~. ends it."`
	BMC       hostBMC       `cmd:"" name:"bmc" help:"Set or show the controller of a host."`
	BMCCheck  hostBMCCheck  `cmd:"" name:"bmc-check" help:"Check a host's controller."`
	BMCRotate hostBMCRotate `cmd:"" name:"bmc-rotate" help:"Give the account of a host's controller a new random password."`
	BMCUsers  hostBMCUsers  `cmd:"" name:"bmc-users" help:"List or change the accounts of a host's controller."`
	BMCLog    hostBMCLog    `cmd:"" name:"bmc-log" help:"Show the event log of a host's controller."`
	Sensors   hostSensors   `cmd:"" help:"Show what a host's controller measures."`
}

func hosts(c *client.Client) client.Noun[inventory.Host] { return c.Hosts.Noun }

type hostList struct {
	State    string `help:"Only hosts in this state." placeholder:"STATE"`
	Rack     string `help:"Only hosts in this rack." placeholder:"RACK"`
	Pool     string `help:"Only hosts that machines of this pool have." placeholder:"POOL"`
	Label    string `help:"Only hosts with this label: KEY or KEY=VALUE." placeholder:"LABEL"`
	Search   string `help:"Part of a name, MAC, serial, UUID, manufacturer or product." placeholder:"TEXT"`
	Selector string `short:"l" help:"Terms that must all hold, such as rack=r1,product=~R6.*" placeholder:"SELECTOR"`
	Limit    int    `help:"At most so many."`
}

// Run lists hosts.
func (c *hostList) Run(s *cli.Session) error {
	q := client.Query{State: c.State, Rack: c.Rack, Pool: c.Pool, Label: c.Label, Search: c.Search, Selector: c.Selector}
	power := map[inventory.HostID]inventory.PowerState{}
	if s.Globals.Output == "table" {
		list, err := cli.ListAll(s, bmcs, client.Query{}, 0)
		if err != nil {
			return err
		}
		for _, b := range list {
			power[b.HostID] = b.Power
		}
	}
	return cli.ShowList(s, hosts, q, c.Limit, []string{"NAME", "STATE", "FLAGS", "MACHINE", "POWER", "MAC", "PLACE", "PROFILE", "PRODUCT", "FIRMWARE", "SEEN"},
		func(h inventory.Host) []string {
			return []string{
				h.Name, string(h.State), flagsOf(h), h.Machine, string(power[h.ID]), bootMAC(h), placeText(h.Place), h.Profile,
				strings.TrimSpace(h.Manufacturer + " " + h.Product), string(h.Firmware), cli.Ago(h.LastSeenAt, time.Now()),
			}
		})
}

// bootMAC is the MAC that a host booted from last, else its first, with how many more it has.
func bootMAC(h inventory.Host) string {
	if len(h.NICs) == 0 {
		return ""
	}
	nic := h.NICs[max(0, slices.IndexFunc(h.NICs, func(n inventory.NIC) bool { return n.IsBoot }))]
	if len(h.NICs) > 1 {
		return fmt.Sprintf("%s +%d", nic.MAC, len(h.NICs)-1)
	}
	return string(nic.MAC)
}

func placeText(p inventory.Place) string {
	var parts []string
	for _, part := range []string{p.Site, p.Row, p.Rack} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if p.Unit > 0 {
		parts = append(parts, fmt.Sprintf("U%d", p.Unit))
	}
	return strings.Join(parts, "/")
}

type hostShow struct {
	Host string `arg:""`
}

// Run shows a host.
func (c *hostShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, hosts, c.Host, func(t *cli.TableWriter, h inventory.Host) {
		t.Field("name", h.Name)
		t.Field("id", string(h.ID))
		t.Field("state", string(h.State)+", since "+cli.TimeText(h.StateSinceAt))
		t.Field("because", h.StateReason)
		t.Field("flags", flagsOf(h))
		profile := h.Profile
		if h.ProfileRevision != 0 {
			profile += fmt.Sprintf(", pinned at revision %d", h.ProfileRevision)
		}
		t.Field("profile", profile)
		t.Field("place", placeText(h.Place))
		t.Field("machine", h.Machine)
		t.Field("claim", string(h.ClaimID))
		if h.FailureN > 0 {
			t.Field("failures", fmt.Sprintf("%d installations in a row", h.FailureN))
		}
		for _, x := range h.Taints {
			t.Field("taint", cli.TaintText(x))
		}
		cli.DiskFields(t, h.RootDisk, h.KeepDisks)
		t.Field("product", strings.TrimSpace(h.Manufacturer+" "+h.Product))
		t.Field("serial", h.Serial)
		t.Field("asset tag", h.AssetTag)
		t.Field("uuid", h.UUID)
		t.Field("firmware", strings.TrimSpace(string(h.Firmware)+" "+string(h.Arch)))
		if h.MemoryMiB > 0 {
			t.Field("memory", fmt.Sprintf("%d MiB", h.MemoryMiB))
		}
		t.Field("disk boot", string(h.DiskBoot))
		for _, n := range h.NICs {
			text := strings.TrimSpace(string(n.MAC) + " " + n.Name)
			if n.Vendor != "" {
				text += " (" + n.Vendor + ")"
			}
			if n.IsBoot {
				text += ", booted from it"
			}
			t.Field("nic", text)
		}
		for _, k := range slices.Sorted(maps.Keys(h.Labels)) {
			t.Field("label", k+"="+h.Labels[k])
		}
		for _, k := range slices.Sorted(maps.Keys(h.Facts)) {
			t.Field("fact", k+"="+h.Facts[k])
		}
		t.Field("last seen", cli.TimeText(h.LastSeenAt))
	})
}

type hostCreate struct {
	Name   string            `arg:"" help:"Its name, a DNS label."`
	MAC    []string          `name:"mac" required:"" help:"A MAC of it; repeat for more." placeholder:"MAC"`
	Label  map[string]string `help:"A label, KEY=VALUE; repeat for more." placeholder:"KEY=VALUE" mapsep:"none"`
	Serial string            `placeholder:"TEXT" help:"Serial number."`
	UUID   string            `name:"uuid" placeholder:"UUID" help:"SMBIOS UUID."`
	Arch   string            `placeholder:"ARCH" help:"x86_64, i386 or arm64."`
	placeFlags
	Profile string `placeholder:"NAME" help:"Profile to pin."`
	DryRun  bool   `help:"Only show what would be stored."`
}

// Run adds a host.
func (c *hostCreate) Run(s *cli.Session) error {
	h := inventory.Host{
		Name: c.Name, Labels: c.Label, Serial: c.Serial, UUID: c.UUID, Arch: inventory.Arch(c.Arch), Profile: c.Profile,
		Place: inventory.Place{Site: cli.Value(c.Site), Row: cli.Value(c.Row), Rack: cli.Value(c.Rack), Unit: cli.Value(c.Unit), Height: cli.Value(c.Height), Face: cli.Value(c.Face)},
	}
	for _, m := range c.MAC {
		h.NICs = append(h.NICs, inventory.NIC{MAC: inventory.MAC(m)})
	}
	return cli.Write(s, hosts, "POST", "", h, c.DryRun)
}

type hostDelete struct {
	Hosts  []string `arg:""`
	Force  bool     `help:"Also hosts with a running operation: Slipway cancels it first."`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run forgets hosts.
func (c *hostDelete) Run(s *cli.Session) error {
	var opts []client.Option
	if c.Force {
		opts = append(opts, client.Force())
	}
	return cli.Remove(s, hosts, c.Hosts, c.DryRun, opts...)
}

type hostAccept struct {
	Hosts    []string `arg:"" optional:""`
	All      bool     `help:"All discovered hosts."`
	Selector string   `short:"l" help:"Those that the selector matches." placeholder:"SELECTOR"`
	DryRun   bool     `help:"Only show which hosts would be accepted."`
}

// Run accepts hosts.
func (c *hostAccept) Run(s *cli.Session, api *client.Client) error {
	n := 0
	for _, given := range []bool{len(c.Hosts) > 0, c.All, c.Selector != ""} {
		if given {
			n++
		}
	}
	if n != 1 {
		return cli.Usage("slipway host accept NAME... or --all or --selector SELECTOR", "say which hosts to accept, in one way")
	}
	r := wire.BulkRequest{Verb: "accept", Hosts: c.Hosts}
	if len(c.Hosts) == 0 {
		r.Selector = strings.TrimPrefix(c.Selector+",state=discovered", ",")
	}
	out, err := api.Hosts.Bulk(s.Ctx, r, c.DryRun)
	if err != nil {
		return err
	}
	return showBulk(s, out, wasDone(out, "accepted"))
}

type hostLabel struct {
	Host   string   `arg:""`
	Labels []string `arg:"" help:"KEY=VALUE to set, KEY- to remove." placeholder:"LABEL"`
	DryRun bool     `help:"Only show what would change."`
}

// Run sets and removes labels.
func (c *hostLabel) Run(s *cli.Session, api *client.Client) error {
	labels, err := labelPatch(c.Labels)
	if err != nil {
		return err
	}
	return patchHost(s, api, c.Host, wire.HostPatch{Labels: labels}, c.DryRun)
}
