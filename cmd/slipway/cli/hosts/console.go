package hosts

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

type hostConsole struct {
	Host   string         `arg:""`
	Log    bool           `help:"Show what was recorded of it, without escape codes."`
	Search string         `help:"Of that only the lines with this text." placeholder:"TEXT"`
	Since  *time.Duration `help:"Of that only the output of this last time, each line with its time." placeholder:"DURATION"`
}

// Help says how to leave.
func (*hostConsole) Help() string {
	return "Your input goes to the host's serial console. After a line end, ~. ends it and ~~ types one ~."
}

// Run connects the terminal with a host's serial console.
func (c *hostConsole) Run(s *cli.Session, api *client.Client) error {
	if c.Log || c.Search != "" || c.Since != nil {
		return c.showLog(s, api)
	}
	line, err := api.Hosts.Console(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	defer func() { _ = line.Close() }()
	defer context.AfterFunc(s.Ctx, func() { _ = line.Close() })()
	if f, ok := s.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.Say("connected to %s; Enter ~. ends it", c.Host)
		old, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return &inventory.Error{Kind: inventory.Unavailable, Msg: "the terminal cannot be used: " + err.Error()}
		}
		defer func() {
			_ = term.Restore(int(f.Fd()), old)
			s.Say("\nleft the console of %s", c.Host)
		}()
	}
	return talk(s.In, s.Out, line)
}

// showLog shows what was recorded.
func (c *hostConsole) showLog(s *cli.Session, api *client.Client) error {
	if c.Since != nil {
		return c.showLines(s, api, time.Now().Add(-*c.Since))
	}
	l, err := api.Hosts.ConsoleLog(s.Ctx, c.Host, c.Search)
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(l, nil)
	}
	if l.End == 0 {
		s.Say("nothing was recorded of it: it is recorded while somebody looks at it, or something is done with the host")
	}
	return cli.WriteText(s.Out, l.Text)
}

// showLines shows what was recorded from a time on, line by line.
func (c *hostConsole) showLines(s *cli.Session, api *client.Client, since time.Time) error {
	l, err := api.Hosts.ConsoleLines(s.Ctx, c.Host, c.Search, since)
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(l, nil)
	}
	for _, line := range l.Lines {
		if err := cli.WriteText(s.Out, line.At.Local().Format(time.DateTime)+"  "+line.Text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// talk carries what is typed to a console and what that says back, until it ends or is left. The bytes of the console go
// out as they are: a console is a terminal, and whoever opens one trusts its machine that far.
func talk(in io.Reader, out io.Writer, line io.ReadWriteCloser) error {
	var isLeft atomic.Bool
	go func() { // it may wait for what is typed until the program ends
		ends, err := typeInto(line, in)
		if ends || err != nil {
			isLeft.Store(true)
			_ = line.Close() // ends the other direction
		}
	}()
	if _, err := io.Copy(out, line); err != nil && !isLeft.Load() {
		return &inventory.Error{Kind: inventory.Unavailable, Err: err, Msg: "the console has ended: the connection broke", Hint: "open it again"}
	}
	return nil
}

// typeInto copies what is typed until it ends or the escape is typed: ~. at the beginning of a line. Standard input that
// ends leaves the console open, so that what it says can still be read.
func typeInto(line io.Writer, in io.Reader) (isLeft bool, err error) {
	e := escape{isStart: true}
	buf := make([]byte, 1024)
	for {
		n, readErr := in.Read(buf)
		out, isLeft := e.filter(buf[:n])
		if len(out) > 0 {
			if _, err := line.Write(out); err != nil {
				return false, err
			}
		}
		if isLeft {
			return true, nil
		}
		if errors.Is(readErr, io.EOF) {
			return false, nil
		}
		if readErr != nil {
			return false, readErr
		}
	}
}

// escape finds ~. and ~~ at the beginnings of lines, as ssh does.
type escape struct {
	isStart bool // of a line
	isOpen  bool // a ~ was typed there and is held back
}

// filter returns what is to be sent, and whether the end was typed.
func (e *escape) filter(typed []byte) (out []byte, isLeft bool) {
	for _, b := range typed {
		switch {
		case e.isOpen && b == '.':
			return out, true
		case e.isOpen && b == '~':
			out, e.isOpen, e.isStart = append(out, '~'), false, false
			continue
		case e.isOpen:
			out, e.isOpen = append(out, '~'), false
		case e.isStart && b == '~':
			e.isOpen, e.isStart = true, false
			continue
		}
		out = append(out, b)
		e.isStart = b == '\r' || b == '\n'
	}
	return out, false
}
