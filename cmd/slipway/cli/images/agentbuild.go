package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/images/agentimage"
	"slipway.dev/slipway/images/ramdisk"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// AgentImageCommand is slipway agent-image.
type AgentImageCommand struct {
	Build agentImageBuild `cmd:"" help:"Build the RAM disk that inspects, wipes and installs hosts, and import it."`
}

type agentImageBuild struct {
	Deb         []string `help:"Debian package of a kernel; the newest installed kernel without this. Repeat for one that comes in parts." placeholder:"FILE" sep:"none"`
	Kernel      string   `help:"File of a kernel; with --modules." placeholder:"FILE"`
	Modules     string   `help:"Folder of its modules, such as /lib/modules/6.1.0-18-amd64." placeholder:"DIR"`
	Firmware    string   `help:"Folder of firmware, such as /lib/firmware." placeholder:"DIR"`
	Extra       []string `help:"RAM disk to add, or FILE=/PATH for a file or folder; repeat for more." placeholder:"FILE" sep:"none"`
	Include     []string `help:"Modules to add to the usual ones, such as *_raid; repeat for more." placeholder:"PATTERN" sep:"none"`
	Exclude     []string `help:"Modules to leave out; repeat for more." placeholder:"PATTERN" sep:"none"`
	Shell       string   `aliases:"busybox" help:"Static BusyBox: gives a shell on the console of every machine that runs the agent." placeholder:"FILE"`
	Agent       string   `help:"The agent's program (default: slipway-agent in the folder of this program)." placeholder:"FILE"`
	Arch        string   `help:"Its architecture: x86_64 or arm64 (default: that of the kernel)." placeholder:"ARCH"`
	Compression string   `help:"zstd, gzip or none (default zstd)." placeholder:"KIND"`
	Out         string   `help:"Only write the files kernel and initrd into this folder; import nothing." placeholder:"DIR"`
}

// Run builds the agent's image, and imports it.
func (c *agentImageBuild) Run(s *cli.Session) error {
	o := agentimage.Options{
		Agent: c.Agent, Kernel: c.Kernel, Modules: c.Modules, Debs: c.Deb, Firmware: c.Firmware, Extra: c.Extra, Include: c.Include, Exclude: c.Exclude,
		Shell: c.Shell, Arch: inventory.Arch(c.Arch), Compression: ramdisk.Compression(c.Compression), Out: c.Out,
	}
	if c.Out != "" {
		res, err := agentimage.Build(s.Ctx, o, talkTo(s))
		if err != nil {
			return err
		}
		return showBuilt(s, res)
	}
	if err := mayImportFiles(s); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "slipway-agent-")
	if err != nil {
		return fmt.Errorf("make folder for the image: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.Out = dir; os.Chmod(dir, 0o755) != nil { // the server may be another user
		return inventory.Errorf(inventory.Internal, "the folder %s cannot be opened for the server", dir)
	}
	res, err := agentimage.Build(s.Ctx, o, talkTo(s))
	if err != nil {
		return err
	}
	if err := importAgent(s, res); err != nil {
		return err
	}
	res.KernelPath, res.InitrdPath = "", ""
	return showBuilt(s, res)
}

// mayImportFiles reports early that the server will not read files of this machine, before minutes are spent on them.
func mayImportFiles(s *cli.Session) error {
	if strings.Contains(s.Globals.Server, "://") && !strings.HasPrefix(s.Globals.Server, "unix:") {
		return cli.Usage("run it on the server, or write files with --out DIR and import them from a web server", "only the server's own socket imports files of this machine")
	}
	api, err := s.Client()
	if err != nil {
		return err
	}
	_, err = api.Version(s.Ctx)
	return err
}

// talkTo is where a build says what it does, line by line.
func talkTo(s *cli.Session) plainWriter { return plainWriter{s} }

type plainWriter struct{ s *cli.Session }

func (w plainWriter) Write(b []byte) (int, error) {
	_, err := w.s.Err.Write([]byte(cli.PlainLines(string(b))))
	return len(b), err
}

// importAgent imports a built image as the one that machines of its architecture boot.
func importAgent(s *cli.Session, res agentimage.Result) error {
	var files []client.ImportFile
	for _, f := range []struct {
		role   inventory.Role
		path   string
		digest inventory.Digest
	}{{inventory.RoleKernel, res.KernelPath, res.KernelDigest}, {inventory.RoleInitrd, res.InitrdPath, res.InitrdDigest}} {
		path, err := filepath.Abs(f.path)
		if err != nil {
			return fmt.Errorf("find %s: %w", f.path, err)
		}
		files = append(files, client.ImportFile{Role: f.role, Source: path, SHA256: f.digest})
	}
	r := client.ImportRequest{Name: inventory.AgentImage(res.Arch), OS: inventory.AgentOS, Release: "1", Arch: res.Arch, Files: files}
	_, err := importImage(s, s.Connection, r)
	var e *inventory.Error
	if errors.As(err, &e) && e.Hint == "" {
		e = e.WithHint("slipway agent-image build --out DIR keeps the files")
		err = e
	}
	return err
}

// showBuilt shows how large an image became.
func showBuilt(s *cli.Session, res agentimage.Result) error {
	return s.Show(res, func(t *cli.TableWriter) {
		t.Field("image", inventory.AgentImage(res.Arch))
		t.Field("kernel", strings.TrimSpace(fmt.Sprintf("%s, %s %s", res.KernelVersion, images.FormatBytes(res.KernelBytes), res.KernelPath)))
		t.Field("ram disk", strings.TrimSpace(fmt.Sprintf("%s, %s in memory %s", images.FormatBytes(res.InitrdBytes), images.FormatBytes(res.UnpackedBytes), res.InitrdPath)))
		t.Field("together", images.FormatBytes(res.KernelBytes+res.InitrdBytes))
		t.Field("modules", fmt.Sprint(res.ModuleN))
		t.Field("firmware", fmt.Sprint(res.FirmwareN))
		t.Field("shell", cli.YesNo(res.HasShell))
	})
}
