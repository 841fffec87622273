package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// CompletionCommand is slipway completion.
type CompletionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help says how to use it.
func (*CompletionCommand) Help() string {
	return "bash: slipway completion bash > /etc/bash_completion.d/slipway; zsh: slipway completion zsh > /usr/share/zsh/vendor-completions/_slipway; " +
		"fish: slipway completion fish > /etc/fish/completions/slipway.fish"
}

// Run writes the script for a shell.
func (c *CompletionCommand) Run(s *Session) error {
	words := WordsOf(s.Parser.Model.Node)
	switch c.Shell {
	case "bash":
		return BashCompletion(s.Out, words)
	case "zsh":
		return ZshCompletion(s.Out, words)
	}
	return FishCompletion(s.Out, words)
}

// word is what may stand behind a command: a verb or a flag.
type word struct {
	Text, Help string
	short      string // of a flag, with its dash
	takesValue bool
	values     []string // that a flag knows
}

// command is a command by its path, and the words that may follow it.
type command struct {
	Path  string // "host list"; "" is slipway itself
	Words []word
}

// WordsOf lists every command of the model, parents first.
func WordsOf(root *kong.Node) []command {
	var all []command
	var walk func(n *kong.Node, path string, flags []word)
	walk = func(n *kong.Node, path string, flags []word) {
		for _, f := range n.Flags {
			if !f.Hidden {
				flags = append(slices.Clone(flags), flagWord(f)...)
			}
		}
		c := command{Path: path}
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				c.Words = append(c.Words, word{Text: child.Name, Help: child.Help})
			}
		}
		for _, p := range n.Positional {
			for _, v := range p.EnumSlice() {
				if v != "" {
					c.Words = append(c.Words, word{Text: v})
				}
			}
		}
		c.Words = append(c.Words, flags...)
		all = append(all, c)
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				for _, name := range append([]string{child.Name}, child.Aliases...) {
					walk(child, strings.TrimSpace(path+" "+name), flags)
				}
			}
		}
	}
	walk(root, "", nil)
	return all
}

func flagWord(f *kong.Flag) []word {
	w := word{Text: "--" + f.Name, Help: f.Help, takesValue: !f.IsBool() && !f.IsCounter()}
	if f.Short != 0 {
		w.short = "-" + string(f.Short)
	}
	if f.Enum != "" {
		w.values = f.EnumSlice()
	}
	words := []word{w}
	if f.Tag != nil && f.Tag.Negatable != "" {
		words = append(words, word{Text: "--no-" + f.Name, Help: f.Help})
	}
	return words
}

// BashCompletion writes a function that finds the command among the words typed and offers what may follow it.
func BashCompletion(w io.Writer, commands []command) error {
	var b strings.Builder
	b.WriteString("# bash completion of slipway\n_slipway() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= words= i\n" +
		"  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$at ${COMP_WORDS[i]}\" in\n")
	var paths []string
	for _, c := range commands {
		if c.Path != "" {
			paths = append(paths, bashQuote(" "+c.Path))
		}
	}
	fmt.Fprintf(&b, "      %s) at=\"$at ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n  case \"$prev\" in\n", strings.Join(paths, "|"))
	for _, v := range valued(commands) {
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;;\n", v.Text, bashQuote(strings.Join(v.values, " ")))
	}
	b.WriteString("  esac\n  case \"$at\" in\n")
	for _, c := range commands {
		var words []string
		for _, x := range c.Words {
			words = append(words, x.Text)
		}
		path := ""
		if c.Path != "" {
			path = " " + c.Path
		}
		fmt.Fprintf(&b, "    %s) words=%s ;;\n", bashQuote(path), bashQuote(strings.Join(words, " ")))
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n" +
		"  [[ ${#COMPREPLY[@]} -eq 0 && $cur != -* ]] && COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -F _slipway slipway\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// valued lists the flags that know their values, once each.
func valued(commands []command) (flags []word) {
	for _, c := range commands {
		for _, x := range c.Words {
			if len(x.values) > 0 && !slices.ContainsFunc(flags, func(f word) bool { return f.Text == x.Text }) {
				flags = append(flags, x)
				if x.short != "" {
					flags = append(flags, word{Text: x.short, values: x.values})
				}
			}
		}
	}
	return flags
}

func bashQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ZshCompletion writes a function that describes each word.
func ZshCompletion(w io.Writer, commands []command) error {
	var b strings.Builder
	b.WriteString("#compdef slipway\n# zsh completion of slipway\n_slipway() {\n  local at= i\n  local -a offer\n  for ((i = 2; i < CURRENT; i++)); do\n    case \"$at ${words[i]}\" in\n")
	var paths []string
	for _, c := range commands {
		if c.Path != "" {
			paths = append(paths, bashQuote(" "+c.Path))
		}
	}
	fmt.Fprintf(&b, "      %s) at=\"$at ${words[i]}\" ;;\n    esac\n  done\n  case \"${words[CURRENT-1]}\" in\n", strings.Join(paths, "|"))
	for _, v := range valued(commands) {
		fmt.Fprintf(&b, "    %s) compadd -- %s; return ;;\n", v.Text, strings.Join(v.values, " "))
	}
	b.WriteString("  esac\n  case \"$at\" in\n")
	for _, c := range commands {
		path := ""
		if c.Path != "" {
			path = " " + c.Path
		}
		fmt.Fprintf(&b, "    %s) offer=(", bashQuote(path))
		for _, x := range c.Words {
			text := strings.ReplaceAll(x.Text, ":", `\:`)
			if x.Help != "" {
				text += ":" + x.Help
			}
			b.WriteString("\n      " + bashQuote(text))
		}
		b.WriteString(") ;;\n")
	}
	b.WriteString("  esac\n  _describe slipway offer || _files\n}\n_slipway \"$@\"\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// FishCompletion writes one line for each word of each command.
func FishCompletion(w io.Writer, commands []command) error {
	var b strings.Builder
	b.WriteString("# fish completion of slipway\nfunction __slipway_at\n  set -l typed (string match -v -- '-*' (commandline -opc)[2..])\n  set -l want (string split -n ' ' -- $argv[1])\n" +
		"  set -l n (count $want)\n  if test $n -eq 0\n    test (count $typed) -eq 0\n    return\n  end\n  test (count $typed) -ge $n; and test \"$typed[1..$n]\" = \"$argv[1]\"\nend\n")
	for _, c := range commands {
		at := "-n " + bashQuote("__slipway_at "+bashQuote(c.Path))
		for _, x := range c.Words {
			line := "complete -c slipway " + at
			if name, isFlag := strings.CutPrefix(x.Text, "--"); isFlag {
				line += " -l " + name
				if x.short != "" {
					line += " -s " + x.short[1:]
				}
				if len(x.values) > 0 {
					line += " -x -a " + bashQuote(strings.Join(x.values, " "))
				} else if x.takesValue {
					line += " -r"
				}
			} else {
				line += " -f -a " + x.Text
			}
			if x.Help != "" {
				line += " -d " + fishQuote(x.Help)
			}
			b.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fishQuote quotes for fish, where a backslash escapes within single quotes.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
