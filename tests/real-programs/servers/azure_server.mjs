// The questions of @azure-devops/mcp, from its own module; the projects that it would fetch are stubbed. `azure_server.mjs EFFECTS`
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { elicitProject, elicitTeam } from './node_modules/@azure-devops/mcp/dist/shared/elicitations.js';
import { done } from './effects.mjs';

const server = new McpServer({ name: 'Azure DevOps MCP Server', version: '2.10.0' });

function add(name, projects) {
  const api = { getProjects: async () => projects, getTeams: async () => [{ name: 'Operations & <b>more</b>' }, { id: 'team-2' }] };
  const connection = { getCoreApi: async () => api };
  server.registerTool(name, { description: 'Asks for a project, then for a team' }, async () => {
    const project = await elicitProject(server, connection);
    if (project.response) return project.response;
    const team = await elicitTeam(server, connection, project.resolved);
    if (team.response) return team.response;
    return done(name, { action: 'accept', content: { project: project.resolved, team: team.resolved } });
  });
}

add('hundred', Array.from({ length: 100 }, (_, at) => ({ name: `Project ${at}`, id: `id-${at}` })));
add('twins', ['Project 0', 'Twin', 'Twin'].map((name, at) => ({ name, id: `id-${at}` })));
await server.connect(new StdioServerTransport());
