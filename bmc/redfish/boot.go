package redfish

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/stmcginnis/gofish/schemas"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// sources are the devices in Redfish's words.
var sources = map[bmc.Device]schemas.BootSource{
	bmc.None: schemas.NoneBootSource, bmc.PXE: schemas.PxeBootSource, bmc.HTTP: schemas.UefiHTTPBootSource,
	bmc.Disk: schemas.HddBootSource, bmc.Virtual: schemas.CdBootSource, bmc.Setup: schemas.BiosSetupBootSource,
}

// spellings are other words for the sources, folded, that controllers use in place of the standard's.
var spellings = map[bmc.Device][]string{
	bmc.Virtual: {"cddvd", "dvd", "cdrom", "dvdrom", "opticaldrive", "virtualcd", "usbcd"},
	bmc.PXE:     {"network", "pxeboot"},
	bmc.Disk:    {"hd", "harddisk", "harddrive", "disk"},
	bmc.HTTP:    {"http", "uefihttpboot", "httpboot"},
	bmc.Setup:   {"setup", "biossettings", "uefisetup"},
}

// fold is a word without case, blanks and signs.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// deviceOf is the device that a source means, in whatever spelling.
func deviceOf(target string) (bmc.Device, bool) {
	word := fold(target)
	for device, source := range sources {
		if word == fold(string(source)) || slices.Contains(spellings[device], word) {
			return device, true
		}
	}
	return "", false
}

// spell finds the word for a device among those that a controller takes: the standard's first, then others.
func spell(device bmc.Device, allowed []string) (string, bool) {
	for _, word := range append([]string{fold(string(sources[device]))}, spellings[device]...) {
		for _, a := range allowed {
			if fold(a) == word {
				return a, true
			}
		}
	}
	return "", false
}

// Boot reads the override in force. If we have no name for its device, Boot returns Redfish's word in lower case.
func (d *driver) Boot(ctx context.Context) (_ bmc.Boot, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return bmc.Boot{}, err
	}
	return bootOf(&s.Boot), nil
}

func bootOf(b *bootSettings) bmc.Boot {
	// Disabled and None both mean no override. Controllers that clear one of the fields leave the other as it was.
	none := b.Target == "" || strings.EqualFold(b.Target, string(schemas.NoneBootSource)) || b.Enabled == "" || b.Enabled == string(schemas.DisabledBootSourceOverrideEnabled)
	if none {
		return bmc.Boot{Device: bmc.None}
	}
	is := bmc.Boot{
		Device: bmc.Device(strings.ToLower(inventory.Clean(b.Target, 40))), Mode: modeOf(b.Mode),
		IsPersistent: b.Enabled == string(schemas.ContinuousBootSourceOverrideEnabled),
	}
	if device, ok := deviceOf(b.Target); ok {
		is.Device = device
	}
	// planTarget sets an HTTP boot so where the firmware has no UefiHttp. Reading it back must give the same device.
	if b.Target == string(schemas.UefiTargetBootSource) && isHTTPPath(b.UefiTarget) {
		is.Device = bmc.HTTP
	}
	if is.Device == bmc.HTTP && b.HTTPBootURI != nil {
		is.URI = inventory.Clean(*b.HTTPBootURI, 2048)
	}
	return is
}

// modeOf returns "" where the controller does not tell: the caller must not take that for BIOS.
func modeOf(mode *string) inventory.Firmware {
	switch {
	case mode == nil:
		return ""
	case *mode == string(schemas.LegacyBootSourceOverrideMode):
		return inventory.BIOS
	case *mode == string(schemas.UEFIBootSourceOverrideMode):
		return inventory.UEFI
	}
	return ""
}

// SetBoot sets the override, and succeeds only once the controller reports it as in force. It sets the URI of an HTTP
// boot where the controller has a place for it. Elsewhere DHCP gives the URI, and Boot then reads none.
//
// The errors are Invalid for what the controller does not offer, and Unavailable when it accepts the order and
// ignores it.
func (d *driver) SetBoot(ctx context.Context, b bmc.Boot) (err error) {
	defer d.safe(&err)
	// This comes before any request: what is wrong in itself needs no controller to refuse it.
	if err := checkBoot(b); err != nil {
		return err
	}
	s, err := d.system(ctx)
	if err != nil {
		return err
	}
	how, err := d.behaviour(ctx, s)
	if err != nil {
		return err
	}
	want, err := d.plan(ctx, s, b, how)
	if err != nil {
		return err
	}
	if want.isIn(&s.Boot) {
		return nil // ordering it again would start another configuration job on iDRAC
	}
	ref := s.ID
	// The settings object holds what the next start of the machine takes over (DSP0266, "Settings resource").
	if how.bootInSettings {
		if ref = s.Settings.SettingsObject.ID; ref == "" {
			ref = strings.TrimRight(s.ID, "/") + "/SD"
		}
	}
	if err := d.patch(ctx, ref, map[string]any{"Boot": want.body()}, "set the boot override"); err != nil {
		return err
	}
	return d.confirmBoot(ctx, want)
}

// confirmBoot waits until the override is in force. Controllers answer 200 before they have checked the order, and some drop it
// silently while the machine runs. A machine that boots its disk instead would look like a fault of the network.
func (d *driver) confirmBoot(ctx context.Context, want *override) error {
	var s *system
	for n := 0; ; n++ {
		var err error
		if s, err = d.system(ctx); err != nil {
			return err
		}
		if want.isIn(&s.Boot) {
			return nil
		}
		if n+1 >= d.looks {
			break
		}
		if err := d.sleep(ctx, d.every); err != nil {
			return d.unreached(ctx, err)
		}
	}
	return inventory.Errorf(inventory.Unavailable, "the controller at %s took the order to boot from %s, but its override is %q %q", d.host(), want.target, clean(s.Boot.Enabled), clean(s.Boot.Target)).
		WithHint("some firmware takes it only while the machine is off, or after a reset of the controller")
}

// checkBoot refuses what no controller can do.
func checkBoot(b bmc.Boot) error {
	if _, ok := sources[b.Device]; !ok {
		return inventory.Errorf(inventory.Invalid, "%q is nothing to boot from", inventory.Clean(string(b.Device), 40))
	}
	if !slices.Contains([]inventory.Firmware{"", inventory.BIOS, inventory.UEFI, inventory.UEFIHTTP}, b.Mode) {
		return inventory.Errorf(inventory.Invalid, "%q is not a boot mode", inventory.Clean(string(b.Mode), 40)).WithHint("use bios or uefi")
	}
	if b.Device == bmc.HTTP && b.Mode == inventory.BIOS {
		return inventory.Errorf(inventory.Invalid, "a BIOS does not boot by HTTP").WithHint("use mode uefi, or boot by PXE")
	}
	if b.URI != "" {
		u, err := url.Parse(b.URI)
		if b.Device != bmc.HTTP || err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return inventory.Errorf(inventory.Invalid, "%q is not a URL to boot from by HTTP", inventory.Clean(b.URI, 80))
		}
	}
	return nil
}

// override is what has to be in force, in Redfish's words. Empty fields are neither sent nor compared.
type override struct {
	target, enabled, mode, uri, path string
}

func (o *override) body() map[string]any {
	body := map[string]any{}
	for key, value := range map[string]string{
		"BootSourceOverrideTarget": o.target, "BootSourceOverrideEnabled": o.enabled, "BootSourceOverrideMode": o.mode,
		"HttpBootUri": o.uri, "UefiTargetBootSourceOverride": o.path,
	} {
		if value != "" {
			body[key] = value
		}
	}
	return body
}

// isIn reports whether the override is in force.
func (o *override) isIn(b *bootSettings) bool {
	// Firmware clears an override in two ways, and bootOf knows both.
	if o.enabled == string(schemas.DisabledBootSourceOverrideEnabled) {
		return bootOf(b).Device == bmc.None
	}
	isEnabled := b.Enabled == o.enabled
	if o.enabled == "" { // not sent, because the controller sets it itself
		isEnabled = bootOf(b).Device != bmc.None
	}
	// A controller that does not show the mode is believed.
	return strings.EqualFold(b.Target, o.target) && isEnabled &&
		(o.mode == "" || b.Mode == nil || *b.Mode == o.mode) &&
		(o.uri == "" || b.HTTPBootURI != nil && *b.HTTPBootURI == o.uri) &&
		(o.path == "" || b.UefiTarget == o.path)
}

// plan works out what to send, within what the controller allows. It refuses here what the controller would refuse
// later, because the controller's own message seldom names the field.
func (d *driver) plan(ctx context.Context, s *system, b bmc.Boot, how behaviour) (*override, error) {
	o := &override{target: string(sources[b.Device]), enabled: string(schemas.OnceBootSourceOverrideEnabled)}
	switch {
	case b.Device == bmc.None:
		o.enabled = string(schemas.DisabledBootSourceOverrideEnabled)
		if how.clearTarget != "" {
			o.target = how.clearTarget
		}
	case b.IsPersistent:
		o.enabled = string(schemas.ContinuousBootSourceOverrideEnabled)
	}
	if err := d.planTarget(ctx, s, b, o); err != nil {
		return nil, err
	}
	// No list of allowed values means that the controller does not tell, and not that it allows none.
	if len(s.Boot.Enableds) > 0 && !slices.Contains(s.Boot.Enableds, o.enabled) {
		return nil, d.notAllowed("the override "+o.enabled, s.Boot.Enableds)
	}
	if err := d.planMode(s, b, how, o); err != nil {
		return nil, err
	}
	// The check of allowed values comes before this: what is not sent needs no permission.
	if how.omitsOnceInUEFI && !b.IsPersistent && b.Device != bmc.None && modeOf(s.Boot.Mode) == inventory.UEFI {
		o.enabled = ""
	}
	return o, nil
}

// planTarget checks the source, and finds the place of a URI. Firmware without UefiHttp may list an HTTP boot option,
// which UefiTarget then names.
func (d *driver) planTarget(ctx context.Context, s *system, b bmc.Boot, o *override) error {
	allowed := s.Boot.Targets
	if b.Device == bmc.None {
		return nil
	}
	if s.Boot.Target == "" && len(allowed) == 0 && s.Boot.Enabled == "" {
		return inventory.Errorf(inventory.Invalid, "the controller at %s has no boot override", d.host()).
			WithHint("set the boot order in the machine's firmware: network first")
	}
	if word, ok := spell(b.Device, allowed); ok {
		o.target = word
	}
	// A URI that the document has no place for would be refused, or worse, ignored. DHCP answers with the same URI then.
	if len(allowed) == 0 || slices.Contains(allowed, o.target) {
		if b.Device == bmc.HTTP && b.URI != "" && s.Boot.hasURI {
			o.uri = b.URI
		}
		return nil
	}
	if b.Device == bmc.HTTP && b.URI == "" && slices.Contains(allowed, string(schemas.UefiTargetBootSource)) && s.Boot.BootOptions.ID != "" {
		// UefiTarget names the firmware's own boot option, which takes its URI from DHCP.
		path, err := d.httpOption(ctx, s.Boot.BootOptions.ID)
		if err != nil {
			return err
		}
		if path != "" {
			o.target, o.path = string(schemas.UefiTargetBootSource), path
			return nil
		}
	}
	return d.notAllowed("booting from "+o.target, allowed)
}

// planMode sets the mode only where it has to change. Setting it to its present value makes iDRAC reconfigure the
// BIOS, and firmware that cannot change it refuses the whole request.
func (d *driver) planMode(s *system, b bmc.Boot, how behaviour, o *override) error {
	want := ""
	switch {
	case b.Mode == inventory.BIOS:
		want = string(schemas.LegacyBootSourceOverrideMode)
	// uefi and uefi-http are the same mode of the firmware; only the device differs.
	case b.Mode != "", b.Device == bmc.HTTP:
		want = string(schemas.UEFIBootSourceOverrideMode)
	}
	is := ""
	if s.Boot.Mode != nil {
		is = *s.Boot.Mode
	}
	// Such firmware resets the mode to its default when an override comes without one.
	if how.modeAlways && is != "" {
		if o.mode = want; want == "" {
			o.mode = is
		}
	} else if want != is && is != "" {
		o.mode = want
	}
	if want == "" || want == is || is == "" {
		return nil
	}
	if how.modeFixed {
		return inventory.Errorf(inventory.Invalid, "the machine is set to boot in mode %s, and its controller cannot change that", clean(is)).
			WithHint("change the boot mode in the machine's firmware settings")
	}
	if len(s.Boot.Modes) > 0 && !slices.Contains(s.Boot.Modes, want) {
		return d.notAllowed("the boot mode "+want, s.Boot.Modes)
	}
	return nil
}

func (d *driver) notAllowed(what string, allowed []string) error {
	return inventory.Errorf(inventory.Invalid, "the controller at %s does not allow %s", d.host(), what).
		WithHint("it allows: %s", inventory.Clean(strings.Join(allowed, ", "), 200))
}

// httpOption finds a boot option of the firmware that boots by HTTP, IPv4 before IPv6.
func (d *driver) httpOption(ctx context.Context, ref string) (string, error) {
	docs, err := d.members(ctx, ref)
	if err != nil {
		return "", err
	}
	found := ""
	for _, doc := range docs {
		var option struct {
			Path string `json:"UefiDevicePath"`
		}
		if decode(doc, &option) != nil || !isHTTPPath(option.Path) {
			continue
		}
		// Slipway's HTTP boot answers both families. IPv4 is preferred because more firmware gets it right.
		if found == "" || strings.Contains(option.Path, "IPv4(") && !strings.Contains(found, "IPv4(") {
			found = option.Path
		}
	}
	return found, nil
}

// isHTTPPath reports whether a UEFI device path in words ends in a URI node (UEFI 2.10 section 10.3.4.23).
func isHTTPPath(path string) bool { return strings.Contains(path, "Uri(") }
