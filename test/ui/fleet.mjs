// Several real servers on one PostgreSQL, each in a network namespace of its own, with machines and a browser on the same bridge. Nothing
// in stories about them is faked. A server that ends by itself is started again, as systemd does.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { appendFile, chmod, copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Rack, slipway } from './rack.mjs'

const run = promisify(execFile)
const versions = '/usr/lib/postgresql'

// installed is the folder of the newest PostgreSQL's programs; undefined where there are none.
export const installed = existsSync(versions)
  ? readdirSync(versions)
      .sort((a, b) => Number(b) - Number(a))
      .map((v) => join(versions, v, 'bin'))
      .find((bin) => existsSync(join(bin, 'initdb')))
  : undefined

// Postgres is a server of Debian's package, in the namespace of its own that inside names.
class Postgres {
  // start makes an empty database in a folder. PostgreSQL refuses to run as root.
  static async start(dir, address, inside) {
    const pg = new Postgres()
    Object.assign(pg, { dir, inside })
    await mkdir(dir)
    await run('chown', ['postgres', dir])
    pg.data = join(dir, 'data')
    await pg.as('initdb', '--pgdata', pg.data, '--username', 'slipway', '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C.UTF-8', '--no-sync')
    await appendFile(join(pg.data, 'pg_hba.conf'), 'host all all 10.77.0.0/16 trust\n')
    await pg.as('pg_ctl', '-D', pg.data, '-w', '-l', join(dir, 'log'), '-o', `-k ${dir} -c listen_addresses=${address}`, 'start')
    await pg.as('createdb', '-h', dir, '-U', 'slipway', 'slipway')
    pg.url = `postgres://slipway@${address}/slipway?sslmode=disable`
    return pg
  }

  args = (program, ...args) => this.inside('runuser', '-u', 'postgres', '--', join(installed, program), ...args)
  as = (...args) => run(...this.args(...args), { cwd: '/' })
  stop = () => [...this.args('pg_ctl', '-D', this.data, '-m', 'immediate', 'stop'), { cwd: '/', stdio: 'ignore' }]
}

// Member is one of the servers. Its token is that of the first start.
class Member extends Rack {
  url = `https://${this.address}:8067`

  constructor(fleet, name, address) {
    super()
    Object.assign(this, { fleet, member: name, address, data: join(fleet.dir, name), url: `https://${address}:8067` })
  }

  // flags are those of its server.
  flags = () => ['--interface', 'vs', '--data-dir', this.data, '--database', this.fleet.postgres.url, '--instance', this.member]

  // accept runs the command of an invitation, and gives it the code in standard input, as a person would. From then on its server takes
  // what the command has written.
  async accept(command, code) {
    const config = join(this.data, 'config.yaml')
    const [sudo, program, ...args] = command.split(' ')
    assert.deepEqual([sudo, program], ['sudo', 'slipway'])
    const [cmd, all] = this.fleet.inside(this.member, slipway, ...args, '--config', config, '--data-dir', join(this.data, 'data'))
    const joining = run(cmd, all)
    joining.child.stdin.end(`${code}\n`)
    await joining
    this.flags = () => ['--config', config]
  }

  // serve starts the server, once more after it was killed, and waits until it says so.
  async serve(ready = /API on /) {
    this.isOver = false
    const [cmd, args] = this.fleet.inside(this.member, slipway, 'serve', ...this.flags(), '--admin-listen', '0.0.0.0:8067', '--mode', 'full', '--unknown', 'wait')
    this.server = spawn(cmd, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    await new Promise((isReady, failed) => {
      const take = (chunk) => {
        said += chunk
        if (ready.test(said)) isReady()
      }
      this.server.stdout.on('data', take)
      this.server.stderr.on('data', take)
      this.server.on('exit', (code) => {
        failed(new Error(`instance ${this.member} ended with ${code}:\n${said}`))
        if (!this.isOver) void this.serve().catch(() => {})
      })
    })
  }

  async kill() {
    this.isOver = true
    if (this.server.exitCode !== null || this.server.signalCode !== null) return
    const gone = new Promise((r) => this.server.on('exit', r))
    this.server.kill('SIGKILL')
    await gone
  }

  browser = () => this.fleet.browser()
  page = (path, options) => super.page(path, { ignoreHTTPSErrors: true, token: this.fleet.token, ...options })
}

// Fleet has the servers, and machines that have none yet. Its own namespace, for the machines and the browser, is the one that Rack calls the server's.
export class Fleet extends Rack {
  // start makes a machine for each name, and starts a server on the first ones.
  static async start(names, servers) {
    const fleet = new Fleet()
    fleet.name = `slipway-fleet-${process.pid}`
    fleet.data = fleet.dir = await mkdtemp(join(tmpdir(), 'slipway-fleet-'))
    await chmod(fleet.dir, 0o755)
    process.once('exit', fleet.drop)
    try {
      await fleet.wire(names)
      fleet.postgres = await Postgres.start(join(fleet.dir, 'postgres'), '10.77.0.99', (...args) => fleet.inside('pg', ...args))
      for (const m of fleet.members.slice(0, servers)) await fleet.join(m)
    } catch (err) {
      await fleet.end()
      throw err
    }
    return fleet
  }

  members = []
  spaces = []
  inside = (space, ...args) => ['ip', ['netns', 'exec', `${this.name}-${space}`, ...args]]
  netns = async (space, ...args) => run('ip', ['-n', `${this.name}-${space}`, ...args])
  space = async (name) => {
    this.spaces.push(name)
    await run('ip', ['netns', 'add', `${this.name}-${name}`])
    await this.netns(name, 'link', 'set', 'lo', 'up')
  }

  // wire makes a bridge, and a cable from it to each server, to the machines, the browser and the database.
  async wire(names) {
    await this.space('hub')
    await this.netns('hub', 'link', 'add', 'bridge', 'type', 'bridge', 'forward_delay', '0', 'mcast_snooping', '0')
    await this.netns('hub', 'link', 'set', 'bridge', 'up')
    const ends = [...names.map((name) => [name, 'vs']), ['cli', 'vc'], ['srv', 'web'], ['pg', 'db']]
    for (const [at, [name, device]] of ends.entries()) {
      await this.space(name)
      await this.netns('hub', 'link', 'add', `port${at}`, 'type', 'veth', 'peer', 'name', device, 'netns', `${this.name}-${name}`)
      await this.netns('hub', 'link', 'set', `port${at}`, 'master', 'bridge', 'up')
      await this.netns(name, 'link', 'set', device, 'up')
      if (device === 'vc') continue
      await this.netns(name, 'address', 'add', `10.77.0.${device === 'db' ? 99 : at + 1}/16`, 'dev', device)
      if (device === 'vs') this.members.push(new Member(this, name, `10.77.0.${at + 1}`))
    }
    await this.netns('cli', 'route', 'add', '10.77.0.0/16', 'dev', 'vc')
  }

  // join starts a server. The first one makes the key and the token, and the others serve on its behalf.
  async join(m) {
    await mkdir(m.data)
    const first = this.members[0]
    if (m !== first) await copyFile(join(first.data, 'secret.key'), join(m.data, 'secret.key'))
    await m.serve(m === first ? /API on / : /this one serves on its behalf/)
    this.token ??= (await readFile(join(first.data, 'admin.token'), 'utf8')).trim()
  }

  // drop takes away what is left, without waiting for anything.
  drop = () => {
    for (const p of [...(this.racks ?? []), ...this.members.map((m) => m.server)]) p?.kill('SIGKILL')
    if (this.postgres) execFileSync(...this.postgres.stop())
    for (const s of this.spaces) execFileSync('ip', ['netns', 'delete', `${this.name}-${s}`])
    rmSync(this.dir, { recursive: true, force: true })
  }

  async end() {
    await this.chromium?.close()
    for (const p of this.racks ?? []) p.kill('SIGKILL')
    for (const m of this.members) if (m.server) await m.kill()
    if (this.postgres) await run(...this.postgres.stop()).catch(() => {})
    for (const s of this.spaces) await run('ip', ['netns', 'delete', `${this.name}-${s}`])
    await rm(this.dir, { recursive: true, force: true })
    process.removeListener('exit', this.drop)
  }
}
