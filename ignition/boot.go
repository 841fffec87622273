package ignition

import (
	"fmt"
	"regexp"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// What runs on the machine, in this order. Each is a oneshot unit that requires those before it, so that the report at
// the end is sent only when all have succeeded; one that fails reports that.
const (
	everyBootStep = "every-boot"
	trustStep     = "trust"
	layersStep    = "layers"
	firstBootStep = "first-boot"
	bootstrapStep = "bootstrap"
	finishStep    = "finish"
	reportStep    = "report"
)

// searchPath finds what was put on an OS with a read-only /usr.
const searchPath = "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Where things are. A document that is merged into another has names of its own: see Within.
func (r *rendering) stepUnit(step string) string { return r.own + "-" + step + ".service" }
func (r *rendering) failedUnit(i string) string  { return r.own + "-failed@" + i + ".service" }
func (r *rendering) scriptDir() string           { return "/etc/" + r.own + "/" }
func (r *rendering) stateDir() string            { return "/var/lib/" + r.own + "/" } // made by StateDirectory=
func (r *rendering) reportURL() string           { return r.scriptDir() + "report-url" }
func (r *rendering) reportTool() string          { return r.scriptDir() + "report.sh" }

// step is one of our oneshot units.
type step struct {
	about     string
	guard     string   // it is skipped when this path exists
	after     []string // other units that it waits for
	exec      []string // command lines
	section   string   // more lines for [Unit]
	noNetwork bool
	reboots   bool // the machine reboots when it has succeeded
}

// addStep writes a unit that runs after the steps before it.
func (r *rendering) addStep(name, from string, s step) {
	var b strings.Builder
	b.WriteString("[Unit]\nDescription=" + s.about + "\n")
	if s.guard != "" {
		b.WriteString("ConditionPathExists=!" + unitEscape(s.guard) + "\n")
	}
	if !s.noNetwork {
		b.WriteString("Wants=network-online.target\nAfter=network-online.target\n")
	}
	if len(s.after) > 0 {
		b.WriteString("After=" + strings.Join(s.after, " ") + "\n")
	}
	if len(r.steps) > 0 {
		all := strings.Join(r.steps, " ")
		b.WriteString("Requires=" + all + "\nAfter=" + all + "\n")
	}
	if r.own != ownName { // the document around this one reports
		b.WriteString("OnFailure=" + ownName + "-failed@%N.service\n")
	}
	if r.reports() && name != reportStep {
		b.WriteString("OnFailure=" + r.failedUnit("%N") + "\n")
	}
	stays := "RemainAfterExit=yes\n"
	if s.reboots { // SuccessAction acts when the unit becomes inactive
		stays = ""
		b.WriteString("SuccessAction=reboot\n")
	}
	b.WriteString(s.section + "\n[Service]\nType=oneshot\n" + stays + "StateDirectory=" + r.own + "\n")
	b.WriteString("Environment=HOME=/root PATH=" + searchPath + "\n")
	for _, e := range s.exec {
		b.WriteString("ExecStart=" + e + "\n")
	}
	b.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	r.service(r.stepUnit(name), b.String(), from)
	r.steps = append(r.steps, r.stepUnit(name))
}

// unitEscape keeps percent signs from being specifiers.
func unitEscape(s string) string { return strings.ReplaceAll(s, "%", "%%") }

func (r *rendering) touch(name string) string { return "/usr/bin/touch " + r.stateDir() + name }
func (r *rendering) bash(name string) string  { return "/bin/bash " + r.scriptDir() + name }

// shell writes one of our scripts. /etc may be mounted noexec: they are started as /bin/bash SCRIPT.
func (r *rendering) shell(name, text, from string) {
	r.text(r.scriptDir()+name, 0o700, text, from)
}

var quotedMarkerRE = regexp.MustCompile(`SLIPWAYLATE([A-Z]*)s([0-9a-f]+)Z`)

// liftLate moves late values out of the single-quoted words of a script into variables that are set at its start. A
// value in a data: URL can be encoded once only, and a line between two others needs no quotes.
func liftLate(text string) string {
	var names []string
	set := ""
	body := quotedMarkerRE.ReplaceAllStringFunc(text, func(m string) string {
		ref := quotedMarkerRE.ReplaceAllString(m, "${1}r${2}")
		n := 0
		for n < len(names) && names[n] != ref {
			n++
		}
		if n == len(names) {
			names = append(names, ref)
			set += fmt.Sprintf("slipway_late_%d=$(cat <<'SLIPWAY_END'\nSLIPWAYLATE%sZ\nSLIPWAY_END\n)\n", n, ref)
		}
		return fmt.Sprintf(`'"$slipway_late_%d"'`, n)
	})
	if set == "" {
		return text
	}
	if shebang, rest, ok := strings.Cut(body, "\n"); ok && strings.HasPrefix(shebang, "#!") {
		return shebang + "\n" + set + rest
	}
	return set + body
}

func (r *rendering) commandsFrom(phase machineconfig.Phase) string {
	return pointer.Of("commands", string(phase))
}

// bootstrap writes the commands of the first boot and the bootstrapper's activation.
func (r *rendering) bootstrap() {
	if lines := r.commandLines(machineconfig.FirstBoot); lines != "" {
		from := r.commandsFrom(machineconfig.FirstBoot)
		r.shell("first-boot.sh", script("Runs once, on the first boot.")+lines, from)
		r.addStep(firstBootStep, from, step{
			about: "Slipway: commands of the first boot", guard: r.stateDir() + "first-boot.done",
			exec: []string{r.bash("first-boot.sh"), r.touch("first-boot.done")},
		})
	}
	a := r.c.Activation
	if a == nil || a.Native != nil {
		return
	}
	const from = "/bootstrap"
	if a.Prelude != nil {
		r.await(a.Sentinel)
		return
	}
	for _, f := range a.Files {
		r.file(f, from+pointer.Of("files", f.Path), 1)
	}
	text := script("Makes this machine part of something: " + strings.Map(noBreak, a.Kind) + ".")
	if len(a.Exec) > 0 {
		text += shellLine(a.Exec) + "\n"
	}
	if a.Sentinel != "" {
		s := late.ShellWord(a.Sentinel)
		text += "mkdir -p \"$(dirname " + s + ")\"\necho success > " + s + "\n"
	}
	r.shell("bootstrap.sh", text, from)
	after := r.lines(from, a.After)
	if r.own != ownName { // what the document around this one runs first
		for _, name := range []string{trustStep, layersStep, firstBootStep} {
			after = append(after, ownName+"-"+name+".service")
		}
	}
	s := step{
		about: "Slipway: bootstrap", guard: a.ReadyPath, after: after, exec: []string{r.bash("bootstrap.sh")},
	}
	if s.guard == "" {
		s.guard = r.stateDir() + "bootstrap.done"
		s.exec = append(s.exec, r.touch("bootstrap.done"))
	}
	r.addStep(bootstrapStep, from, s)
}

const capiUnit = "kubeadm.service"

// await adds a step that ends when the bootstrap of a merged document has: its units are its own.
func (r *rendering) await(sentinel string) {
	if sentinel == "" {
		return
	}
	// Cluster API's own Ignition starts kubeadm with this unit; what the admin wants first comes first.
	if _, isTaken := r.unit[capiUnit]; len(r.steps) > 0 && !isTaken {
		r.unitFrom(unit{Name: capiUnit, DropIns: []dropIn{{Name: "10-" + r.own + ".conf", Contents: "[Unit]\nAfter=" + strings.Join(r.steps, " ") + "\n"}}}, "/bootstrap")
	}
	path := late.ShellWord(sentinel)
	r.shell("bootstrap.sh", script("Waits for the bootstrap that the merged configuration runs.")+
		"for ((i = 0; i < 1800; i++)); do\n\t[ ! -e "+path+" ] || exit 0\n\tsleep 2\ndone\n"+
		"echo \"there is no \""+path+" >&2\nexit 1\n", "/bootstrap")
	r.addStep(bootstrapStep, "/bootstrap", step{
		about: "Slipway: waits for the bootstrap", guard: r.stateDir() + "bootstrap.done",
		exec: []string{r.bash("bootstrap.sh"), r.touch("bootstrap.done")},
	})
}

// commands writes those of every boot: early, before the network is up.
func (r *rendering) commands() {
	lines := r.commandLines(machineconfig.EveryBoot)
	if lines == "" {
		return
	}
	from := r.commandsFrom(machineconfig.EveryBoot)
	r.shell("every-boot.sh", script("Runs early on every boot.")+lines, from)
	r.service(r.stepUnit(everyBootStep), `[Unit]
Description=Slipway: commands of every boot
DefaultDependencies=no
Wants=network-pre.target
After=local-fs.target systemd-tmpfiles-setup.service
Before=network-pre.target basic.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
Environment=HOME=/root PATH=`+searchPath+`
ExecStart=`+r.bash("every-boot.sh")+`

[Install]
WantedBy=basic.target
`, from)
}

// finish runs the commands after the bootstrap and removes what held secrets.
func (r *rendering) finish() {
	lines := r.commandLines(machineconfig.PostBootstrap)
	a := r.c.Activation
	hasActivation := a != nil && a.Native == nil && a.Prelude == nil
	if lines == "" && !hasActivation {
		return
	}
	from := r.commandsFrom(machineconfig.PostBootstrap)
	text := script("Runs once, after the bootstrap: the admin's commands, then what held secrets is removed.") + lines
	remove := []string{"/run/ignition.json"} // Ignition's own copy of the document
	if hasActivation {
		from = "/bootstrap"
		remove = append(remove, "/etc/tmpfiles.d/"+r.stages[1].conf, r.stages[1].dir)
		for _, p := range a.Cleanup {
			remove = append(remove, r.line(from, p))
		}
		if late.HasMarker(shellLine(a.Exec)) {
			remove = append(remove, r.scriptDir()+"bootstrap.sh")
		}
	}
	if late.HasMarker(r.commandLines(machineconfig.FirstBoot)) {
		remove = append(remove, r.scriptDir()+"first-boot.sh")
	}
	s := step{
		about: "Slipway: after the bootstrap", guard: r.stateDir() + "finish.done",
		exec: []string{r.bash("finish.sh"), r.touch("finish.done")},
	}
	if late.HasMarker(lines) {
		s.exec = append(s.exec, "/bin/rm -f "+r.scriptDir()+"finish.sh")
	}
	r.shell("finish.sh", text+"rm -rf -- "+shellLine(remove)+"\n", from)
	r.addStep(finishStep, from, s)
}

// reports reports whether the machine tells how its first boot went.
func (r *rendering) reports() bool {
	p := r.c.PhoneHome
	return p.URL != "" && (p.Enabled == nil || *p.Enabled)
}

// phoneHome writes the units that report. The URL is in a file for root only, and reaches the tool through its
// standard input: /proc shows arguments to everybody.
func (r *rendering) phoneHome() {
	if !r.reports() {
		return
	}
	const from = "/phoneHome"
	r.text(r.reportURL(), 0o600, r.line(from, r.c.PhoneHome.URL)+"\n", from)
	r.shell("report.sh", strings.Replace(reportScript, "REPORT-URL", r.reportURL(), 1), from)
	r.unitFrom(unit{Name: r.failedUnit(""), Contents: ref(`[Unit]
Description=Slipway: report that %i has failed
ConditionPathExists=` + r.reportURL() + `
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart=/bin/bash ` + r.reportTool() + ` failed %i
`)}, from)
	r.addStep(reportStep, from, step{
		about:   "Slipway: report the first boot",
		section: "ConditionPathExists=" + r.reportURL() + "\n",
		exec:    []string{"/bin/bash " + r.reportTool() + " up", "/bin/rm -f " + r.reportURL()},
	})
}

const reportScript = `#!/bin/bash
# Tells Slipway how the first boot went: report.sh STEP [DETAIL]
set -u
read -ra urls < REPORT-URL || exit 0 # one for each instance of Slipway: that of this boot may be gone for good
query="?step=$1"
[ -z "${2-}" ] || query="$query&detail=$2"
log=/dev/null
case "${2-}" in
*-bootstrap) # what makes the machine part of something: with the end of its log
	query="$query&part=bootstrap"
	log=$(mktemp) && journalctl --unit="$2.service" --boot --no-pager --output=cat --lines=80 2> /dev/null | tail -c 8000 > "$log"
	;;
esac
for ((i = 0; i < 120; i++)); do
	for url in "${urls[@]}"; do
		if command -v curl > /dev/null; then
			printf 'url = "%s"\n' "$url$query" | curl --config - --data-binary @"$log" --fail --silent --show-error \
				--connect-timeout 5 --max-time 30 --output /dev/null && exit 0
		else
			printf '%s\n' "$url$query" | wget --post-file="$log" --quiet --timeout=30 --tries=1 \
				--output-document=/dev/null --input-file=- && exit 0
		fi
	done
	sleep 5
done
echo "Slipway did not take the report" >&2
exit 1
`

// prelude merges the Ignition document of a Cluster API bootstrap secret over ours. Its text is a late value or holds
// some, and is in the document as a data: URL.
func (r *rendering) prelude() {
	a := r.c.Activation
	if a == nil || a.Prelude == nil {
		return
	}
	const from = "/bootstrap/prelude"
	if a.Prelude.Format != "ignition" {
		r.notExpressible(from, "the prelude is "+a.Prelude.Format+"; only an Ignition document can be merged")
		return
	}
	r.from[fmt.Sprintf("ignition.config.merge.%d", len(r.b.Ignition.Config.Merge))] = from
	r.b.Ignition.Config.Merge = append(r.b.Ignition.Config.Merge, resource{Source: late.DataURL(string(a.Prelude.Data))})
}
