"""The local Discord: REST, gateway, voice gateway and media server, started and stopped together."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from ssl import SSLContext
from typing import Any, Self

import structlog
from aiohttp import web

from rehearsal.discord.certificate import Certificate, write_certificate
from rehearsal.discord.control import PREFIX, ControlApi
from rehearsal.discord.faults import FaultInjector
from rehearsal.discord.gateway.gateway import MAIN_SESSION_S, Gateway, GatewayCloseCode
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.spec import GuildSpec
from rehearsal.discord.guild.state import LocalGuild, PostedMessage, VoiceCredentials
from rehearsal.discord.interactions.interactions import Interactions
from rehearsal.discord.media.forwarder import Forwarder, NetworkConditions
from rehearsal.discord.rest import routes
from rehearsal.discord.rest.gate import RateLimits, RestFaults, RestGate
from rehearsal.discord.rest.wire import API_PREFIX, API_VERSION, RefusedRequest
from rehearsal.discord.voice.gateway import VOICE_VERSION, VoiceCloseCode, VoiceGateway
from rehearsal.discord.websockets import WebsocketServer
from rehearsal.errors import LocalDiscordError
from rehearsal.foreign_requests import refuse_foreign_requests

_log = structlog.get_logger()

HOST = "127.0.0.1"
_GATEWAY_PATH = "/gateway"
_SHUTDOWN_TIMEOUT_S = 2.0
_CONTROL_TOKEN_BYTES = 16


@dataclass(frozen=True, slots=True)
class VoiceMessage:
    """The sound of a voice message, as Discord's client records it: Ogg Opus. `duration_s`: what the client says."""

    content: bytes
    duration_s: float


class LocalDiscord:
    """A Discord with one guild. Use it as an async context manager, which closes every connection at the end.

    `http_port`: the port of REST, the gateway and the control API; 0 takes a free one, as all others are. `network` may
    be changed at any time, and `seed` makes its effects repeatable.
    `response_timeout_s`: how long a bot may take to answer a command (default: Discord's time). `main_session_s`: how
    long a bot's main session, and with it the bot's voice state, lives on after its websocket broke. `beside`: another
    guild, which has started already; the two are one Discord, with the REST API, gateway and certificate of the first.
    Raises `LocalDiscordError` when a port is taken.

    `invoke`, `suggest`, `press`, `pick`, `write`: what members do with commands, buttons, menus and windows
    (`Interactions`). `state`: what the guild holds (commands, messages, threads, who is in voice). `gateway`: the main
    gateway. `media`: the media server. `gate`: what each request passes.
    `voice_gateway`: for a client inside this process without a websocket.

    *Ownership*: sockets, timers and the certificate's directory belong to this object.
    """

    def __init__(
        self,
        *,
        guild: GuildSpec | None = None,
        http_port: int = 0,
        network: NetworkConditions | None = None,
        seed: int = 0,
        response_timeout_s: float | None = None,
        main_session_s: float = MAIN_SESSION_S,
        beside: LocalDiscord | None = None,
    ) -> None:
        self._beside = beside
        self.network = network or NetworkConditions()
        self._wanted_port = http_port
        self._certificate: Certificate | None = None
        self.state: LocalGuild = LocalGuild(guild or GuildSpec(), beside=None if beside is None else beside.state)
        self.media = Forwarder(self.network, seed=seed)
        self.voice_gateway = VoiceGateway(self.state, self.media)
        self.gateway: Gateway = Gateway(
            self.state,
            url=lambda: self.gateway_url,
            voice_endpoint=lambda: self.voice_endpoint,
            disconnect_voice=self.voice_gateway.disconnect,
            main_session_s=main_session_s,
            beside=None if beside is None else beside.gateway,
        )
        self._interactions = Interactions(self.state, self.gateway, response_timeout_s=response_timeout_s)
        self.invoke, self.suggest = self._interactions.invoke, self._interactions.suggest
        self.press, self.pick = self._interactions.press, self._interactions.pick
        self.write = self._interactions.write
        self._rest_faults: RestFaults = RestFaults() if beside is None else beside._rest_faults
        self.gate = RestGate(RateLimits(monotonic=time.monotonic, wall=time.time), self._rest_faults)
        self._faults = FaultInjector(
            self.state,
            self.gateway,
            self.voice_gateway,
            self.media,
            rest=self._rest_faults,
            interactions=self._interactions,
            switch_endpoint=self.switch_endpoint,
        )
        self._websockets = WebsocketServer()
        self._control_token = secrets.token_urlsafe(_CONTROL_TOKEN_BYTES)
        self._http_port = 0
        self._attachments: dict[int, bytes] = {} if beside is None else beside._attachments
        self._rest: list[routes.RestApi] = [] if beside is None else beside._rest
        self._voice_ports: list[int] = []
        self._voice_port_in_use = 0
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            if self._beside is not None:
                self._certificate = self._beside._certificate
            else:
                directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="local-discord-")))
                self._certificate = write_certificate(directory)
            assert self._certificate is not None, "the guild beside this one has started"
            await self._open(stack, self._certificate.server_context())
            self._stack = stack.pop_all()
        _log.info("local_discord_started", api_base=self.api_base, voice_endpoint=self.voice_endpoint)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        _log.info("local_discord_stopped")
        if wrong := sorted(set().union(*(each.wrong_answers for each in self._rest))):
            warnings.warn(f"The local Discord's answers were not as Discord specifies them: {wrong}", stacklevel=2)

    # --- addresses ---------------------------------------------------------------------------------------------

    @property
    def api_base(self) -> str:
        """The base URL of the REST API, for `discord.http.Route.BASE`."""
        return f"http://{HOST}:{self._http_port}{API_PREFIX}"

    @property
    def control_base(self) -> str:
        """The base URL of the control API. It ends in a token, without which the API does nothing."""
        return f"http://{HOST}:{self._http_port}{PREFIX}/{self._control_token}"

    @property
    def gateway_url(self) -> str:
        """The URL of the gateway, for `discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY`."""
        return f"ws://{HOST}:{self._http_port}{_GATEWAY_PATH}"

    @property
    def voice_endpoint(self) -> str:
        """The host and port of the voice websocket, as VOICE_SERVER_UPDATE names them."""
        return f"{HOST}:{self._voice_ports[self._voice_port_in_use]}"

    @property
    def certificate_path(self) -> Path:
        """The certificate that voice clients must trust."""
        assert self._certificate is not None, "the local Discord was not started"
        return self._certificate.certificate_path

    # --- the guild ---------------------------------------------------------------------------------------------

    @property
    def guild(self) -> GuildSpec:
        """What the guild is like now."""
        return self.state.guild

    def change(self, **parts: Any) -> None:
        """Change parts of the guild (fields of `GuildSpec`): its channels, roles, members. The bots are told.

        Whoever is in a voice channel that is no more, or is no member any more, leaves it. Raises `LocalDiscordError`
        if the guild would be impossible.
        """
        self.gateway.become(replace(self.guild, **parts))
        self.voice_gateway.add_rooms()

    @property
    def refused(self) -> Counter[RefusedRequest]:
        """The requests that were refused, but for limits and ordered trouble, and how often."""
        return sum((each.refused for each in self._rest), Counter())

    @property
    def messages(self) -> tuple[PostedMessage, ...]:
        """The messages of all text channels, oldest first, without ephemeral replies."""
        return self.state.messages()

    async def join(self, user_id: int, *, channel_id: int | None = None) -> VoiceCredentials:
        """Move a member into a voice channel (by default the first), as the member's client would.

        Raises `LocalDiscordError` for an unknown member or channel.
        """
        return self.gateway.join(user_id, channel_id or self.guild.voice_channels[0].id)

    async def leave(self, user_id: int) -> None:
        """Remove a member from voice. Raises `LocalDiscordError` when the member is in no channel."""
        if not self.gateway.leave(user_id):
            name = self.guild.member(user_id).name
            raise LocalDiscordError(f"{name} is in no voice channel. Join first.")

    async def post_message(
        self,
        user_id: int,
        text: str,
        *,
        channel_id: int | None = None,
        replies_to: int | None = None,
        pings: bool = True,
        voice: VoiceMessage | None = None,
    ) -> PostedMessage:
        """Post a message as a member. `replies_to`: the id of the message that it answers. `pings`: whether the reply
        does. `voice`: the sound of a voice message, which has no text. Raises
        `LocalDiscordError` for an unknown member or channel, or an empty text.
        """
        channel = channel_id or self.guild.text_channel.id
        self.guild.member(user_id)
        if not self.state.has_channel(channel):
            raise LocalDiscordError(f"The guild has no channel {channel}.")
        if not text and voice is None:
            raise LocalDiscordError("A message needs a text.")
        number = self.state.snowflake()
        payload = payloads.message(
            self.guild,
            message_id=number,
            channel_id=channel,
            author_id=user_id,
            content=text,
            extra=None if voice is None else self._voice_fields(channel, voice),
            replies_to=None if replies_to is None else self.state.written.get(replies_to),
            allowed={"parse": ["users", "roles"], "replied_user": pings},
        )
        self.state.add_message(payload)
        self.gateway.broadcast_message("MESSAGE_CREATE", payload)
        return PostedMessage(number, channel, user_id, text, payload)

    def _voice_fields(self, channel_id: int, voice: VoiceMessage) -> Json:
        """Return the fields of a voice message, whose sound the CDN has from now on."""
        number = self.state.snowflake()
        self._attachments[number] = voice.content
        url = f"http://{HOST}:{self._http_port}/attachments/{channel_id}/{number}/voice-message.ogg"
        return payloads.voice_message(number, url, size_bytes=len(voice.content), duration_s=voice.duration_s)

    async def _serve_attachment(self, request: web.Request) -> web.Response:
        content = self._attachments.get(int(request.match_info["attachment"]))
        return web.Response(status=404) if content is None else web.Response(body=content, content_type="audio/ogg")

    async def fault(self, name: str, /, *, user_id: int | None = None, **options: float) -> Json:
        """Cause a fault (see `faults`). Raises `LocalDiscordError`."""
        return self._faults.inject(name, user_id=user_id, options=options)

    def status(self) -> Json:
        """Return the whole status, as `GET /status` of the control API sends it."""
        first = self.voice_gateway.rooms[self.guild.voice_channels[0].id].delivery
        return {
            "guild": {"id": str(self.guild.id), "name": self.guild.name},
            "addresses": {
                "api_base": self.api_base,
                "gateway_url": self.gateway_url,
                "voice_endpoint": self.voice_endpoint,
                "certificate_path": str(self.certificate_path),
            },
            "members": [self._member_status(member.id) for member in self.guild.members],
            "voice_states": list(self.state.voice_states.values()),
            "epoch": first.epoch,
            "leaves": {str(user): leaf for user, leaf in first.leaves.items()},
            "channels": [self._channel_status(channel.id) for channel in self.guild.voice_channels],
            "packets": self.media.counters.as_dict(),
            "network": self.network.as_dict(),
            "messages": [message.as_dict() for message in self.messages],
        }

    def _member_status(self, user_id: int) -> Json:
        session = self.voice_gateway.session_of(user_id)
        channel_id = self.state.voice_channel_of(user_id)
        return {
            "id": str(user_id),
            "name": self.guild.member(user_id).name,
            "bot": self.guild.is_bot(user_id),
            "online": self.gateway.online(user_id),
            "voice_channel_id": None if channel_id is None else str(channel_id),
            "voice_connected": session is not None and session.connection is not None and session.protocol_selected,
            "ssrc": None if session is None else session.leg.ssrc,
        }

    def _channel_status(self, channel_id: int) -> Json:
        delivery = self.voice_gateway.rooms[channel_id].delivery
        return {
            "id": str(channel_id),
            "dave_version": delivery.version,
            "epoch": delivery.epoch,
            "leaves": {str(user): leaf for user, leaf in delivery.leaves.items()},
            "pending_transitions": list(delivery.pending_transitions),
        }

    def switch_endpoint(self) -> None:
        """Name the other of the two voice servers from now on. Who is connected stays where they are."""
        self._voice_port_in_use = 1 - self._voice_port_in_use

    # --- opening and closing -----------------------------------------------------------------------------------

    async def _open(self, stack: contextlib.AsyncExitStack, tls: SSLContext) -> None:
        stack.push_async_callback(self._websockets.close_transports)
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self.media, (HOST, 0))
        stack.callback(self.media.close)
        stack.callback(self.voice_gateway.close)
        stack.callback(self.gateway.close)
        stack.callback(self._interactions.close)
        self._rest.append(
            routes.RestApi(self.state, self.gateway, self._interactions, gateway_url=lambda: self.gateway_url)
        )
        if self._beside is not None:
            self._http_port = self._beside._http_port
        else:
            application = web.Application(middlewares=[refuse_foreign_requests])
            control = ControlApi(self, token=self._control_token)
            application.router.add_routes([*routes.rest_routes(self._rest, self.gate), *control.routes()])
            application.router.add_get(_GATEWAY_PATH, self._serve_gateway)
            application.router.add_get(_GATEWAY_PATH + "/", self._serve_gateway)
            application.router.add_get(r"/attachments/{channel}/{attachment:\d+}/{name}", self._serve_attachment)
            self._http_port = await self._listen(stack, application, self._wanted_port, None)
        # There are two endpoints, so that the fault "migrate" can move clients from one to the other.
        for _ in range(2):
            voice = web.Application(middlewares=[refuse_foreign_requests])
            voice.router.add_get("/", self._serve_voice)
            self._voice_ports.append(await self._listen(stack, voice, 0, tls))
        stack.push_async_callback(self._websockets.close_all)

    async def _listen(
        self,
        stack: contextlib.AsyncExitStack,
        application: web.Application,
        port: int,
        tls: SSLContext | None,
    ) -> int:
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN_TIMEOUT_S)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, HOST, port, ssl_context=tls).start()
        except OSError as error:
            raise LocalDiscordError(
                f"The local Discord cannot listen on {HOST}:{port} ({error.strerror}). Stop the program that "
                "uses that port, or choose another one (0 takes a free one)."
            ) from error
        return int(runner.addresses[0][1])

    async def _serve_gateway(self, request: web.Request) -> web.WebSocketResponse:
        wrong = GatewayCloseCode.INVALID_VERSION
        return await self._websockets.serve(request, self.gateway, version=API_VERSION, otherwise=wrong)

    async def _serve_voice(self, request: web.Request) -> web.WebSocketResponse:
        wrong = VoiceCloseCode.BAD_REQUEST
        return await self._websockets.serve(request, self.voice_gateway, version=VOICE_VERSION, otherwise=wrong)
