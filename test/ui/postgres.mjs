// A PostgreSQL server of Debian's package, for stories in which several instances share a database. It listens on a Unix socket only.
import { execFile, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const versions = '/usr/lib/postgresql'

// installed is the folder of the newest version's programs; undefined where there are none.
export const installed = existsSync(versions)
  ? readdirSync(versions)
      .sort((a, b) => Number(b) - Number(a))
      .map((v) => join(versions, v, 'bin'))
      .find((bin) => existsSync(join(bin, 'initdb')))
  : undefined

export class Postgres {
  // start makes an empty database in a folder of its own. PostgreSQL refuses to run as root.
  static async start() {
    const pg = new Postgres()
    pg.dir = await mkdtemp(join(tmpdir(), 'slipway-pg-'))
    await run('chown', ['postgres', pg.dir])
    await chmod(pg.dir, 0o755)
    const data = join(pg.dir, 'data')
    await pg.as('initdb', '--pgdata', data, '--username', 'slipway', '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C.UTF-8', '--no-sync')
    pg.server = spawn('runuser', pg.args('postgres', '-D', data, '-k', pg.dir, '-c', 'listen_addresses='), { stdio: 'ignore' })
    for (let tries = 0; ; tries++)
      try {
        await pg.as('createdb', '-h', pg.dir, '-U', 'slipway', 'slipway')
        break
      } catch (err) {
        if (tries > 100) throw err
        await new Promise((r) => setTimeout(r, 100))
      }
    pg.url = `postgres://slipway@/slipway?host=${pg.dir}&sslmode=disable`
    return pg
  }

  args = (program, ...args) => ['-u', 'postgres', '--', join(installed, program), ...args]
  as = (...args) => run('runuser', this.args(...args), { cwd: '/' })

  async end() {
    await this.as('pg_ctl', '-D', join(this.dir, 'data'), '-m', 'immediate', 'stop').catch(() => {})
    await rm(this.dir, { recursive: true, force: true })
  }
}
