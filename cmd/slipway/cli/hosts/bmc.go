package hosts

import (
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

func bmcs(c *client.Client) client.Noun[wire.HostBMC] { return c.BMCs }

// BMCCommand is slipway bmc: the controllers of all hosts, and, under shorter names, what the commands of a host do with one.
type BMCCommand struct {
	List    bmcList       `cmd:"" help:"List how hosts are powered."`
	Scan    bmcScan       `cmd:"" help:"Look for controllers in a range of addresses; logs in nowhere."`
	Set     hostBMC       `cmd:"" help:"Say how a host is powered, or show it."`
	Check   hostBMCCheck  `cmd:"" help:"Look whether a host's controller does what is needed."`
	Rotate  hostBMCRotate `cmd:"" help:"Give the account of a host's controller a new random password."`
	Reset   bmcReset      `cmd:"" help:"Restart a host's controller itself; the machine goes on as it is."`
	Sensors hostSensors   `cmd:"" help:"Show what a host's controller measures."`
	Log     hostBMCLog    `cmd:"" help:"Show the event log of a host's controller."`
	Users   hostBMCUsers  `cmd:"" help:"List or change the accounts of a host's controller."`
	Boot    bmcBoot       `cmd:"" help:"Show or set where a host boots from next."`
	Media   bmcMedia      `cmd:"" help:"Show what is in a host's virtual drive, put an image in or eject it."`
}

type bmcList struct{}

// Run lists controllers.
func (*bmcList) Run(s *cli.Session) error {
	return cli.ShowList(s, bmcs, client.Query{}, 0, []string{"HOST", "DRIVER", "ADDRESS", "POWER", "READ", "REACHABLE", "CONTROLLER", "REASON"}, func(b wire.HostBMC) []string {
		return []string{
			b.Host, string(b.Driver), b.Address, powerText(b.Power), cli.Ago(b.PowerAt, time.Now()), cli.YesNo(b.IsReachable),
			strings.Join(strings.Fields(b.Vendor+" "+b.Model+" "+b.Firmware), " "), b.Reason,
		}
	})
}

type bmcScan struct {
	Range  string   `arg:"" help:"Such as 10.0.0.0/24 or 10.0.0.10-10.0.0.50."`
	Driver []string `help:"Only redfish or only ipmi; both without this." placeholder:"DRIVER"`
}

// Run looks for controllers.
func (c *bmcScan) Run(s *cli.Session, api *client.Client) error {
	found, err := api.Scan(s.Ctx, c.Range, c.Driver...)
	if err != nil {
		return err
	}
	err = s.Show(found.Items, func(t *cli.TableWriter) {
		t.Row("ADDRESS", "DRIVER", "HOST", "VENDOR", "PRODUCT", "MAC", "UUID", "WARNING")
		for _, b := range found.Items {
			t.Row(b.Address, string(b.Driver), b.Host, b.Vendor, strings.TrimSpace(b.Product+" "+b.Name), string(b.MAC), b.UUID, b.Warning)
		}
	})
	if err == nil && s.Globals.Output == "table" {
		s.Say("%d found", len(found.Items))
	}
	return err
}

type bmcReset struct {
	Host string `arg:""`
}

// Run restarts a controller.
func (c *bmcReset) Run(s *cli.Session, api *client.Client) error {
	if err := api.Hosts.ResetBMC(s.Ctx, c.Host); err != nil {
		return err
	}
	s.Say("the controller restarts; it does not answer for some minutes. slipway bmc check %s shows when it answers again", c.Host)
	return nil
}

type bmcBoot struct {
	Host       string `arg:""`
	Device     string `arg:"" optional:"" default:"" enum:",none,pxe,http,disk,virtual-media,setup" help:"none, pxe, http, disk, virtual-media or setup; without it, what is set is shown."`
	URI        string `name:"uri" help:"For http, where the controller can set it." placeholder:"URL"`
	Mode       string `help:"bios or uefi (default: the current setting)." enum:",bios,uefi" default:"" placeholder:"MODE"`
	Persistent bool   `help:"For all boots, not for the next one only."`
}

// Run shows or sets the boot override.
func (c *bmcBoot) Run(s *cli.Session, api *client.Client) error {
	if c.Device == "" && (c.URI != "" || c.Mode != "" || c.Persistent) {
		return cli.Usage("slipway bmc boot NAME pxe --persistent", "say the device as well")
	}
	var b wire.BMCBoot
	var err error
	if c.Device == "" {
		b, err = api.Hosts.BMCBoot(s.Ctx, c.Host)
	} else {
		b, err = api.Hosts.SetBMCBoot(s.Ctx, c.Host, wire.BMCBoot{Device: bmc.Device(c.Device), URI: c.URI, Mode: inventory.Firmware(c.Mode), IsPersistent: c.Persistent})
	}
	return cli.Answered(b, err).Show(s, func(t *cli.TableWriter, b wire.BMCBoot) {
		t.Field("device", string(b.Device))
		t.Field("uri", b.URI)
		t.Field("mode", string(b.Mode))
		t.Field("persistent", cli.YesNo(b.IsPersistent))
	})
}

type bmcMedia struct {
	Host  string `arg:""`
	URL   string `arg:"" optional:"" name:"url" help:"Address of the image to put in."`
	Eject bool   `help:"Take out what is in it."`
}

// Run shows or changes what is in the virtual drive.
func (c *bmcMedia) Run(s *cli.Session, api *client.Client) error {
	if c.Eject && c.URL != "" {
		return cli.Usage("give an address or --eject", "either put an image in or eject it")
	}
	var m wire.BMCMedia
	var err error
	if c.Eject || c.URL != "" {
		m, err = api.Hosts.SetBMCMedia(s.Ctx, c.Host, c.URL)
	} else {
		m, err = api.Hosts.BMCMedia(s.Ctx, c.Host)
	}
	return cli.Answered(m, err).Show(s, func(t *cli.TableWriter, m wire.BMCMedia) {
		if m.URL == "" {
			t.Text("empty")
			return
		}
		t.Text(m.URL)
	})
}
