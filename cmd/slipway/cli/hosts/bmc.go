package hosts

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
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
	List    bmcList       `cmd:"" help:"List the controllers of hosts."`
	Scan    bmcScan       `cmd:"" help:"Look for controllers in a range of addresses; logs in nowhere."`
	Set     hostBMC       `cmd:"" help:"Set or show the controller of a host."`
	Check   hostBMCCheck  `cmd:"" help:"Check a host's controller."`
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

// hostBMC has no flag for the password itself: a command line is seen by everybody on the machine, and kept by shells.
type hostBMC struct {
	Host         string            `arg:""`
	Driver       *string           `help:"redfish, ipmi, libvirt, wol, webhook, manual or fake." placeholder:"DRIVER"`
	Address      *string           `help:"Where it is: https://10.0.0.5 for redfish and webhook, 10.0.0.5 for ipmi, qemu:///system for libvirt." placeholder:"ADDRESS"`
	Username     *string           `aliases:"user" help:"Account that is used." placeholder:"NAME"`
	PasswordFile *string           `help:"File with its password; - is standard input, or a question at a terminal." placeholder:"FILE"`
	System       *string           `help:"Which machine behind the address it is: a Redfish system, a libvirt domain." placeholder:"ID"`
	Insecure     *bool             `negatable:"" help:"Accept any certificate: anyone in between can read the password."`
	Fingerprint  *string           `help:"SHA-256 of its certificate." placeholder:"HEX"`
	MAC          *string           `name:"mac" help:"MAC of the controller's own port." placeholder:"MAC"`
	Option       map[string]string `help:"Option of the driver; repeat for more, KEY= takes one away." placeholder:"KEY=VALUE" mapsep:"none"`
	Delete       bool              `help:"Delete the controller; from then on a person has to switch the power by hand."`
	Test         bool              `help:"Connect with it and say what fails: name, connection, certificate, login or rights. Nothing is saved."`
}

// Run shows or says how a host is powered.
func (c *hostBMC) Run(s *cli.Session, api *client.Client) error {
	given := *c
	given.Host, given.Delete, given.Test = "", false, false
	isGiven := !reflect.ValueOf(given).IsZero()
	switch {
	case c.Delete && (isGiven || c.Test):
		return cli.Usage("give --delete alone", "either say how it is powered or forget that")
	case c.Delete:
		return api.Hosts.DeleteBMC(s.Ctx, c.Host)
	case !isGiven && !c.Test:
		return c.show(s, api)
	}
	b, err := api.Hosts.BMC(s.Ctx, c.Host)
	if err != nil && !cli.IsNotFound(err) {
		return err
	}
	if err != nil {
		if _, err := api.Hosts.Get(s.Ctx, c.Host); err != nil {
			return err
		}
		if c.Driver == nil {
			return cli.Usage("use one of "+fmt.Sprint(inventory.BMCDrivers()), "--driver is missing: nothing is known yet of how %s is powered", c.Host)
		}
	}
	in := client.SetBMC{
		Driver: b.Driver, Address: b.Address, Username: b.Username, System: b.System, InsecureSkipVerify: b.InsecureSkipVerify,
		Fingerprint: b.Fingerprint, MAC: b.MAC, Options: b.Options,
	}
	if err := c.apply(s, &in); err != nil {
		return err
	}
	if c.Test {
		k, err := api.Hosts.TestBMC(s.Ctx, c.Host, in)
		if err != nil {
			return err
		}
		return showBMCCheck(s, k)
	}
	return s.Stored(api.Hosts.SetBMC(s.Ctx, c.Host, in))
}

// apply lays the flags over what is stored. Another driver begins anew: what was said is not true of it.
func (c *hostBMC) apply(s *cli.Session, in *client.SetBMC) error {
	if c.Driver != nil && inventory.BMCDriver(*c.Driver) != in.Driver {
		*in = client.SetBMC{Driver: inventory.BMCDriver(*c.Driver)}
	}
	cli.Set(&in.Address, c.Address)
	cli.Set(&in.Username, c.Username)
	cli.Set(&in.System, c.System)
	cli.Set(&in.InsecureSkipVerify, c.Insecure)
	cli.Set(&in.Fingerprint, c.Fingerprint)
	cli.Set(&in.MAC, (*inventory.MAC)(c.MAC))
	for k, v := range c.Option {
		if in.Options == nil {
			in.Options = map[string]string{}
		}
		if in.Options[k] = v; v == "" {
			delete(in.Options, k)
		}
	}
	if c.PasswordFile == nil {
		return nil
	}
	var err error
	if in.Password, err = s.ReadSecret("password of the controller", *c.PasswordFile); err == nil && in.Password == "" {
		err = inventory.Errorf(inventory.Invalid, "the password is empty").WithHint("without --password-file, the stored one stays")
	}
	return err
}

func (c *hostBMC) show(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.Hosts.BMC(s.Ctx, c.Host)).Show(s, func(t *cli.TableWriter, b wire.HostBMC) {
		t.Field("host", b.Host)
		t.Field("driver", string(b.Driver))
		t.Field("address", b.Address)
		t.Field("system", b.System)
		t.Field("user", b.Username)
		if b.InsecureSkipVerify {
			t.Field("certificate", "any is accepted")
		}
		t.Field("fingerprint", b.Fingerprint)
		t.Field("mac", string(b.MAC))
		for _, k := range slices.Sorted(maps.Keys(b.Options)) {
			t.Field("option", k+"="+b.Options[k])
		}
		t.Field("power", strings.TrimSpace(powerText(b.Power)+" "+cli.Prefixed("read ", cli.Ago(b.PowerAt, time.Now()))))
		t.Field("reachable", cli.YesNo(b.IsReachable))
		t.Field("because", b.Reason)
		t.Field("controller", strings.Join(strings.Fields(b.Vendor+" "+b.Model+" "+b.Firmware), " "))
		t.Field("can", strings.Join(b.Capabilities, " "))
		t.Field("asked", cli.TimeText(b.CheckedAt))
		if l := b.LastCheck; l != nil {
			t.Field("checked", cli.TimeText(l.At)+" by "+l.By+", "+map[bool]string{true: "good", false: "not good"}[l.IsGood]+": "+l.Detail)
		}
	})
}

type hostSensors struct {
	Host string `arg:""`
}

// Run shows what a controller measures.
func (c *hostSensors) Run(s *cli.Session, api *client.Client) error {
	x, err := api.Hosts.Sensors(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	defer sayLeftOut(s, x.LeftOut)
	return s.Show(x, func(t *cli.TableWriter) {
		t.Row("STATUS", "SENSOR", "KIND", "VALUE")
		for _, r := range x.Items {
			t.Row(r.Status, r.Name, r.Kind, strings.TrimSpace(fmt.Sprintf("%g %s", r.Value, r.Unit)))
		}
		if x.Health != "" {
			t.Row(x.Health, "health, as the controller sums it up")
		}
	})
}

// sayLeftOut says beside the answer what is not in it.
func sayLeftOut(s *cli.Session, texts []string) {
	for _, text := range texts {
		s.Say("left out: %s", text)
	}
}

type hostBMCLog struct {
	Host  string `arg:""`
	Limit int    `default:"100" help:"At most so many entries, newest first."`
	Clear bool   `help:"Empty it instead."`
}

// Run shows a controller's event log.
func (c *hostBMCLog) Run(s *cli.Session, api *client.Client) error {
	if c.Clear {
		return api.Hosts.ClearBMCLog(s.Ctx, c.Host)
	}
	list, err := api.Hosts.BMCLog(s.Ctx, c.Host, c.Limit)
	if err != nil {
		return err
	}
	defer sayLeftOut(s, list.LeftOut)
	return s.Show(list.Items, func(t *cli.TableWriter) {
		t.Row("ID", "AT", "SEVERITY", "MESSAGE")
		for _, e := range list.Items {
			t.Row(e.ID, e.At, e.Severity, e.Message)
		}
	})
}

type hostBMCUsers struct {
	Host         string `arg:""`
	Add          string `help:"Add an administrator, or give this account a new password; with --password-file." placeholder:"NAME"`
	Remove       string `help:"Delete this account." placeholder:"NAME"`
	PasswordFile string `help:"File with the password; - is standard input, or a question at a terminal." placeholder:"FILE" default:"-"`
}

// Run lists or changes a controller's accounts.
func (c *hostBMCUsers) Run(s *cli.Session, api *client.Client) error {
	var list client.Page[bmc.User]
	var err error
	switch {
	case c.Add != "" && c.Remove != "":
		return cli.Usage("one account at a time", "either add an account or remove one")
	case c.Add != "":
		password, err := s.ReadSecret("password of "+c.Add, c.PasswordFile)
		if err != nil {
			return err
		}
		list, err = api.Hosts.SetBMCUser(s.Ctx, c.Host, c.Add, password)
		if err != nil {
			return err
		}
	case c.Remove != "":
		list, err = api.Hosts.RemoveBMCUser(s.Ctx, c.Host, c.Remove)
	default:
		list, err = api.Hosts.BMCUsers(s.Ctx, c.Host)
	}
	return cli.Items(list, err).Show(s, cli.Rows([]string{"ID", "NAME", "ROLE", "ENABLED"}, func(u bmc.User) []string {
		return []string{u.ID, u.Name, u.Role, cli.YesNo(u.Enabled)}
	}))
}

type hostBMCCheck struct {
	Host string `arg:""`
}

// Run looks whether a controller does what we need; anything that is not good is a failure.
func (c *hostBMCCheck) Run(s *cli.Session, api *client.Client) error {
	k, err := api.Hosts.CheckBMC(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	return showBMCCheck(s, k)
}

// showBMCCheck shows what was looked at; anything that is not good is a failure.
func showBMCCheck(s *cli.Session, k wire.BMCCheck) error {
	var can [][]string
	if len(k.Capabilities) > 0 {
		can = [][]string{{"ok", "can", strings.Join(k.Capabilities, " ")}}
	}
	return cli.ShowChecks(s, k, k.IsGood, k.Results, can...)
}

type hostBMCRotate struct {
	Host string       `arg:""`
	Wait cli.WaitFlag `help:"Wait until the controller knows it; --wait=5m waits no longer than that."`
}

// Run gives a controller's account a new password.
func (c *hostBMCRotate) Run(s *cli.Session) error {
	f, err := s.Follow(nil)
	if err != nil {
		return err
	}
	o, err := f.API.Hosts.RotateBMC(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	return begun(s, f, o, c.Wait)
}
