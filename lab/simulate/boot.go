package simulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	agentwire "slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory/sleep"
)

// powerLossStages are where the reboot fault may strike.
var powerLossStages = [...]Stage{StageLoader, StageIPXE, StageScript, StageFetching, StageSystem}

// live boots the machine until it arrives somewhere, as a rack would: what fails is switched off and on again.
func (m *machine) live(ctx context.Context) Stage {
	begin := time.Now()
	for {
		end, err := m.boot(ctx)
		if err == nil && end == StageDisk {
			end, err = m.fromDisk(ctx)
		}
		if ctx.Err() != nil {
			m.failed("unfinished: " + string(m.at()))
			m.enter(StageFailed)
			return StageFailed
		}
		if err == nil && end != StageOff {
			m.enter(end)
			m.group.stats.took("boot", time.Since(begin))
			return end
		}
		switch {
		case err == nil:
			m.group.stats.count("restarts")
		case errors.Is(err, errPowerLost) || errors.Is(err, errBrokenOff):
			m.group.stats.count("power losses")
		default:
			m.failed(err.Error())
		}
		m.drop()
		m.enter(StageOff)
		_ = sleep.For(ctx, m.timer(4*time.Second))
	}
}

// boot is one boot from power-on. StageOff means that the machine restarts by itself.
func (m *machine) boot(ctx context.Context) (Stage, error) {
	m.boots++
	m.isSameXID, m.isSlow = m.dice.happens(FaultSameXID), m.dice.happens(FaultSlow)
	m.failAt = ""
	if m.dice.happens(FaultReboot) {
		m.failAt = powerLossStages[m.dice.rand.IntN(len(powerLossStages))]
	}
	isEFI := m.firmware == FirmwareUEFI || m.firmware == FirmwareUEFIHTTP
	if m.firmware != FirmwareIPXEROM {
		end, err := m.fromFirmware(ctx)
		if err != nil || end != "" {
			return end, err
		}
		// The loader starts: snponly.efi and undionly.kpxe show their Ctrl-B banner for two seconds.
		if err := m.rest(ctx, 2*time.Second); err != nil {
			return "", err
		}
	}
	return m.fromIPXE(ctx, isEFI)
}

// fromFirmware is the first part of a boot: an address and a loader. A stage other than "" ends the boot.
func (m *machine) fromFirmware(ctx context.Context) (Stage, error) {
	var d dialect
	switch m.firmware {
	case FirmwareBIOS:
		d = pxeROM()
	case FirmwareUEFIHTTP:
		d = edk2(true)
	default:
		d = edk2(false)
	}
	if !m.enter(StageAddress) {
		return "", errPowerLost
	}
	b, err := m.exchange(ctx, d, "")
	if err != nil {
		return "", err
	}
	file := b.ack.bootFile()
	if file == "" {
		return StageDisk, nil // no boot data: the next boot entry
	}
	if !m.enter(StageLoader) {
		return "", errPowerLost
	}
	start := time.Now()
	got, err := m.fetchLoader(ctx, d, b, file)
	if err != nil {
		return "", err
	}
	m.group.stats.took("loader", time.Since(start))
	m.group.stats.bytes(got.size)
	return "", m.checkLoader(got)
}

func (m *machine) fetchLoader(ctx context.Context, d dialect, b bound, file string) (download, error) {
	isURL := strings.Contains(file, "://")
	if m.firmware == FirmwareUEFIHTTP {
		if class := string(b.ack.option(optClass)); class != "HTTPClient" {
			return download{}, fmt.Errorf("HTTP Boot ignores an answer with class %q", class)
		}
		if !isURL {
			return download{}, fmt.Errorf("HTTP Boot was given %q, which is no URL", file)
		}
		c := m.http("UefiHttpBoot/1.0", true)
		defer c.close()
		return c.fetch(ctx, file)
	}
	if isURL {
		return download{}, fmt.Errorf("PXE firmware was given a URL: %s", withoutQuery(file))
	}
	if err := checkPXEAnswer(&b.ack.message); err != nil {
		return download{}, err
	}
	next := b.ack.siaddr
	if !next.IsValid() || next.IsUnspecified() {
		next = b.server
	}
	c := tftpClient{
		open:   func() (net.PacketConn, error) { return m.group.net.packetConn(ctx, m.address) },
		server: netip.AddrPortFrom(next, m.group.tftpPort), timer: m.timer(4 * time.Second), tries: 6,
		drop: func() bool { return m.dice.happens(FaultDrop) },
	}
	defer c.close()
	if m.isSlow {
		c.slow = time.Sleep
	}
	if m.dice.happens(FaultTFTPAbort) {
		after := 1 + m.dice.rand.IntN(40)
		c.abort = func(blocks int) bool { return blocks >= after }
	}
	got, err := c.fetch(ctx, file, d.file)
	if err != nil {
		return download{}, err
	}
	return got, m.compareLoader(ctx, c.server, file)
}

// checkPXEAnswer refuses what EDK2 refuses: a boot file under class PXEClient without the permission (43.6 bit 3) to
// use it, after which it asks port 4011 instead.
func checkPXEAnswer(ack *message) error {
	if string(ack.option(optClass)) != "PXEClient" {
		return nil
	}
	if v := encapsulated(ack.option(optPXE), 6); len(v) == 1 && v[0]&8 != 0 {
		return nil
	}
	return errors.New("the answer has class PXEClient without 43.6=8: firmware drops its boot file")
}

// checkLoader starts the loader in spirit: right kind for the firmware, and the same bytes for everyone.
func (m *machine) checkLoader(d download) error {
	name := strings.ToLower(lastName(d.name))
	isEFI := strings.HasSuffix(name, ".efi") || strings.HasSuffix(name, ".signed")
	if isEFI != (m.firmware != FirmwareBIOS) {
		return fmt.Errorf("%s cannot run %s", m.firmware, name)
	}
	if isEFI && !strings.HasPrefix(string(d.head), "MZ") {
		return fmt.Errorf("%s is no EFI program", name)
	}
	if d.size == 0 {
		return fmt.Errorf("%s is empty", name)
	}
	if !strings.Contains(name, "ipxe") && !strings.Contains(name, "snponly") && !strings.Contains(name, "undionly") {
		return fmt.Errorf("%s is no iPXE; only iPXE is simulated", name)
	}
	return m.group.stats.sameFile(name, d.digest)
}

// fromIPXE is the second part: iPXE asks for an address and a script, and does what the script says.
func (m *machine) fromIPXE(ctx context.Context, isEFI bool) (Stage, error) {
	if !m.enter(StageIPXE) {
		return "", errPowerLost
	}
	b, err := m.exchange(ctx, ipxe(isEFI), "ipxe ")
	if err != nil {
		return "", fmt.Errorf("iPXE: %w", err)
	}
	if err := m.awaitRouter(ctx); err != nil {
		return "", err
	}
	file := b.ack.bootFile()
	if file == "" {
		return StageDisk, nil // "Nothing to boot": back to the firmware
	}
	if !strings.Contains(file, "://") {
		return "", fmt.Errorf("iPXE was given %q instead of a script's URL: it would load itself without end", file)
	}
	if !m.enter(StageScript) {
		return "", errPowerLost
	}
	c := m.http("iPXE/1.0.0+git-20190125.36a4c85-5.1", false)
	defer c.close()
	v := &console{machine: m, http: c}
	in := &interpreter{verbs: v, settings: newSettings(m.says(), isEFI, m.address, b.server, b.ack.siaddr, file)}
	first, err := v.fetch(ctx, file)
	if err != nil {
		return "", err
	}
	e, err := in.run(ctx, first.body)
	if errors.Is(err, errArrived) {
		return StageWaiting, nil
	}
	if err != nil {
		return "", fmt.Errorf("script stopped after %q: %w", v.said, err)
	}
	if e.how == endExit && v.missed != nil {
		return "", fmt.Errorf("script gave up: %w", v.missed)
	}
	return m.after(ctx, e)
}

// after is what follows the script.
func (m *machine) after(ctx context.Context, e ending) (Stage, error) {
	switch e.how {
	case endReboot:
		return StageOff, nil
	case endExit, endDisk:
		return StageDisk, nil
	}
	if !m.enter(StageSystem) {
		return "", errPowerLost
	}
	if err := m.rest(ctx, 5*time.Second); err != nil {
		return "", err
	}
	if err := (osClient{m}).start(ctx); err != nil {
		return "", fmt.Errorf("the booted system: %w", err)
	}
	if session := argument(e.args, agentwire.ArgServer); session != "" {
		return m.runAgent(ctx, session)
	}
	if m.dice.happens(FaultNeverReport) {
		return StageSilent, nil
	}
	where, err := reportURL(e.args)
	if err != nil {
		return "", err
	}
	c := m.http("Slipway-simulate", false)
	defer c.close()
	start := time.Now()
	for try := 1; ; try++ {
		if _, err = c.fetch(ctx, where); err == nil {
			m.group.stats.took("report", time.Since(start))
			return StageBooted, nil
		}
		// A booted system goes on trying, as a service that reports would.
		if try == 60 || ctx.Err() != nil || errors.Is(err, errBrokenOff) {
			return "", fmt.Errorf("report: %w", err)
		}
		m.group.stats.count("report retries")
		if err := sleep.For(ctx, m.timer(4*time.Second)); err != nil {
			return "", err
		}
	}
}

// reportURL finds where the booted system reports to in its kernel's arguments.
func reportURL(args string) (string, error) {
	for _, word := range strings.Fields(args) {
		if v, ok := strings.CutPrefix(word, "slipway.report="); ok {
			u, err := url.Parse(v)
			if err != nil || u.Host == "" {
				return "", fmt.Errorf("slipway.report=%q is no URL", v)
			}
			q := u.Query()
			q.Set("step", "up")
			q.Set("detail", "synthetic system is up")
			u.RawQuery = q.Encode()
			return u.String(), nil
		}
	}
	return "", errors.New("the kernel's arguments have no slipway.report=, so nobody would learn that it runs")
}

// console is the verbs of a script on this machine.
type console struct {
	*machine
	http   *httpClient
	said   string // the last line on the screen
	missed error  // why the last file or script did not come; nil when it did
}

func (c *console) fetch(ctx context.Context, target string) (download, error) {
	isFile := strings.Contains(withoutQuery(target), "/artefact/")
	if isFile && !c.enter(StageFetching) {
		return download{}, errPowerLost
	}
	if !isFile {
		c.stage.Store(StageScript)
	}
	start := time.Now()
	d, err := c.http.fetch(ctx, target)
	if !strings.HasSuffix(withoutQuery(target), "/report") {
		c.missed = err
	}
	if err != nil {
		return d, err
	}
	step := "script"
	if isFile {
		step = "file"
		c.group.stats.bytes(d.size)
	}
	c.group.stats.took(step, time.Since(start))
	return d, nil
}

// longPause is the shortest sleep of a machine that the server tells to wait. A machine also sleeps when the server does not answer, and
// writes that to its console.
const longPause = 5 * time.Second

func (c *console) pause(ctx context.Context, d time.Duration) error {
	if d >= longPause && !strings.Contains(c.said, "no answer") {
		c.enter(StageWaiting)
		c.group.stats.count("told to wait")
		if c.group.cfg.Expect == StageWaiting {
			return errArrived
		}
	}
	return sleep.For(ctx, max(min(d, time.Second), time.Duration(float64(d)*c.group.cfg.Pace)))
}

func (c *console) say(line string) { c.said = line }

func (c *console) network(ctx context.Context, withRouter bool) error {
	_, err := c.exchange(ctx, ipxe(c.firmware == FirmwareUEFI || c.firmware == FirmwareUEFIHTTP), "ipxe ")
	if err == nil && withRouter {
		err = c.awaitRouter(ctx)
	}
	return err
}

// obey follows the power of the controller until the run ends: it boots the machine when the power is on, and stops its work when the
// power changes.
func (m *machine) obey(ctx context.Context) {
	for ctx.Err() == nil {
		isOn, changed := m.outlet.state()
		if isOn {
			m.run(ctx, changed)
		}
		m.drop()
		if again, _ := m.outlet.state(); isOn && again {
			continue // restarted
		}
		m.enter(StageOff)
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// run boots a machine that is on again and again until its power changes.
func (m *machine) run(ctx context.Context, changed <-chan struct{}) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-changed:
			stop()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		end, err := m.boot(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil && end == StageDisk {
			end, err = m.fromDisk(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && end != StageOff:
			m.enter(end)
			if every := m.group.cfg.RenewEvery; every > 0 && end == StageBooted {
				osClient{m}.keep(ctx, every)
			}
			<-ctx.Done()
			return
		case err == nil:
			m.group.stats.count("restarts")
		case errors.Is(err, errPowerLost) || errors.Is(err, errBrokenOff):
			m.group.stats.count("power losses")
		default:
			m.failed(err.Error())
		}
		m.drop()
		_ = sleep.For(ctx, m.timer(2*time.Second))
	}
}

// awaitRouter is what iPXE 1.0 does after its DHCP: it solicits routers at 0, 0.25, 0.75, 1.75, 3.75 and 7.75 s and
// goes on at the first advertisement, or after 15.75 s. At a pace of 0 it does not ask at all.
func (m *machine) awaitRouter(ctx context.Context) error {
	if m.group.cfg.Pace == 0 {
		return nil
	}
	begin, came := time.Now(), m.group.net.advert()
	for _, gap := range seconds(.25, .5, 1, 2, 4, 8) {
		if err := m.group.net.solicit(m.id.MAC); err != nil {
			return err
		}
		late, stop := context.WithTimeout(ctx, time.Duration(float64(gap)*m.group.cfg.Pace))
		select {
		case <-came:
			stop()
			m.group.stats.took("router", time.Since(begin))
			return nil
		case <-late.Done():
			stop()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	m.group.stats.count("router waits without an answer")
	return ctx.Err()
}
